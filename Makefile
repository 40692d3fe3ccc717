# chatelaine: `make` alone lists what there is.

# The go command takes this toolchain by itself; an older one cannot build us.
export GOTOOLCHAIN := go1.27.3
# A build that would change go.mod stops. The version is VERSION; the go command's
# own stamp fails where git refuses the checkout, as it does another user's.
export GOFLAGS := -mod=readonly -buildvcs=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Race tests of one package take minutes on two slow cores, and several times that
# beside other work. A test that hangs is shown by its stack all the same.
TEST_TIMEOUT ?= 45m
# Long enough to meet every seed and some hundred mutations.
FUZZ_BRIEF ?= 2s
FUZZ_LONG ?= 5m
# As often as the boundary asks for; some minutes.
KILLS ?= 1000
# For each of three answers; a median of some hundred turns of the largest.
BENCH_BOUNDARY ?= 10s
# What reads strangers' bytes first: the strict parser, the contract loader,
# the path builder, and the way from an answer to the envelope.
FUZZ_FIRST := ./internal/validate/... ./internal/actions/... ./internal/gateway

STATICCHECK_VERSION := v0.8.2
STATICCHECK := .tools/staticcheck-$(STATICCHECK_VERSION)

.DEFAULT_GOAL := help
.PHONY: help build demo test check kills fuzz conformance mutate bench bench-boundary clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/chatelaine and bin/chatelained
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/chatelaine ./cmd/chatelained

demo: build ## the main job, start to end, with a throw-away home (DEMO_FLAGS=--keep leaves it)
	CGO_ENABLED=0 go build -trimpath -o bin/chatelaine-demo ./internal/demo/cmd
	bin/chatelaine-demo $(DEMO_FLAGS)

test: ## installs what the tests need (as root, Debian), then all tests under -race and brief fuzzing
	scripts/install-test-deps.sh
	go test -race -timeout $(TEST_TIMEOUT) ./...
	scripts/fuzz.sh $(FUZZ_BRIEF) $(FUZZ_FIRST)

check: $(STATICCHECK) ## gofmt, vet, staticcheck and the race tests
	scripts/gofmt.sh
	go vet ./...
	$(STATICCHECK) ./...
	go test -race -timeout $(TEST_TIMEOUT) ./...

fuzz: ## every fuzz target for FUZZ_LONG each
	scripts/fuzz.sh $(FUZZ_LONG) ./...

kills: ## the vault's save loops killed KILLS times at random moments: each time it opens, old or new
	CHATELAINE_TEST_KILLS=$(KILLS) go test -count=1 -timeout 60m -run '^TestKill' -v ./internal/vault

conformance: ## public suites for JSON Schema and JSON, cost of the worst answers (UPDATE=-update writes the tables of docs/conformance.md)
	go vet -tags conformance ./internal/validate/conformance
	go test -tags conformance -count=1 ./internal/validate/conformance $(UPDATE)

mutate: ## every check of internal/validate off, one at a time: which test turns red (UPDATE=-write writes the table)
	go run ./internal/validate/conformance/mutate $(UPDATE)

bench: ## every benchmark, no tests
	go test -run '^$$' -bench . -benchmem ./...

bench-boundary: ## what one answer costs from bytes to proof, against the strict parse and both engines alone
	go test -count=1 -run '^Test(BoundaryTable|MemoryOf|TimeIs)' -v ./internal/validate -boundary $(BENCH_BOUNDARY)

clean: ## what the targets above have made
	rm -rf bin .tools

$(STATICCHECK):
	GOFLAGS= GOBIN=$(CURDIR)/.tools go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	mv .tools/staticcheck $@
