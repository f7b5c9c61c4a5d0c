"""The asyncio shell over websockets."""
