GO ?= go

.PHONY: plugins

plugins: ## the Wasm tools that ship inside the binary
	$(GO) run ./internal/kit/bundle
