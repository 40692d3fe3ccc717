package contracttest

import "chatelaine/internal/actions"

// FixtureProblems reads the fixtures of a contract without playing them and
// returns the mistakes of the files, for the lint.
func FixtureProblems(contracts string, c *actions.Contract) actions.Problems {
	_, problems := readFixtures(contracts, c)
	return problems
}
