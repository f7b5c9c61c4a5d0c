// The theme: as the system, dark or light. Loaded before anything is drawn, so that nothing flashes.
"use strict";
(() => {
  const order = ["auto", "dark", "light"];
  const names = { auto: "Auto", dark: "Dark", light: "Light" };
  const labels = { auto: "Theme: as the system", dark: "Theme: dark", light: "Theme: light" };
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("realtime.theme") ?? "auto";
  } catch {
    // Storage may be forbidden; the theme then lasts as long as the page.
  }
  if (!order.includes(chosen)) chosen = "auto";

  const apply = () => {
    document.documentElement.dataset.theme = chosen;
    const button = document.getElementById("theme");
    if (!button) return;
    button.setAttribute("aria-label", labels[chosen]);
    document.getElementById("theme-word").textContent = names[chosen];
  };

  apply();
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      chosen = order[(order.indexOf(chosen) + 1) % order.length];
      try {
        localStorage.setItem("realtime.theme", chosen);
      } catch {
        // As above.
      }
      apply();
    });
  });
})();
