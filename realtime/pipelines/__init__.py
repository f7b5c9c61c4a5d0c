"""The asyncio glue between tracks, the machine and the link, one file per arrow."""
