# Every tool is pinned in tools.mod, so that importers of the SDK do not inherit it.
GO   ?= go
TOOL  = $(GO) tool -modfile=tools.mod

.PHONY: help generate lint

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

generate: ## write generated code again
	$(GO) run -modfile=tools.mod sdk/proto/generate.go

lint: ## gofumpt, vet and staticcheck; nothing to say is success
	@test -z "$$($(TOOL) gofumpt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
