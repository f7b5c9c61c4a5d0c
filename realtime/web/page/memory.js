// What outlives a reload of this tab: which call it is in, what was on, and the captions. It ends with the tab.

const KEY = "realtime.call";

export function remember(facts) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(facts));
  } catch {
    // Storage may be forbidden or full: a reload then begins a new call.
  }
}

export function recall() {
  try {
    const facts = JSON.parse(sessionStorage.getItem(KEY));
    return facts?.identity?.call && facts.identity.secret ? facts : null;
  } catch {
    return null;
  }
}

export function forget() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // As above.
  }
}

/** The token in the page's address, `#token=…`; it is taken out of the address and never sent in one. */
export function tokenOfAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) history.replaceState(null, "", location.pathname + location.search);
  return given ?? "";
}
