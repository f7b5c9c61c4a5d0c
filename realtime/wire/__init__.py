"""Pure translation between a provider's messages and the core's vocabulary."""
