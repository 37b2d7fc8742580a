"""The privacy of shuffled messages: prices of reports, and of noisy bucket counts."""
