"""The asyncio shell over aiortc."""
