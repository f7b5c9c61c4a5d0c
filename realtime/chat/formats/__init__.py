"""The conversation in other people's shapes: one file per provider (behaviour.md F1–F11).

`text` holds what every format says alike, `arguments` reads what a model passed to a tool, `rounds` pairs calls with
their results, `conversion` drives a format and converts again only what changed. Formats take messages and never know a
`ChatContext`.
"""
