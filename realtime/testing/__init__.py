"""The test kit for applications."""
