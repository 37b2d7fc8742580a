"""Reports from a given source of noise: for tests, which need the same ones again."""


def seeded_reports(response, values, noise):
    """Return the reports that ``response`` makes of ``values`` with ``noise``."""
    return response.from_words(values, noise.uniform_words(len(values) * response.words))
