"""Synchronous work on frames and samples: pictures to JPEG, audio to PCM."""
