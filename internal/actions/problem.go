package actions

import "chatelaine/internal/actions/strictyaml"

// Problem is one mistake in a contract or in the site file, with its place.
type Problem = strictyaml.Problem

// Problems are all mistakes found in one load.
type Problems = strictyaml.Problems
