"""What a shuffler adds: prices of shuffled messages, and the counts of negative binomials."""
