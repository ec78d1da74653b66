# What contributors run every day. Each target is a part of .ci/run, which CI runs whole.

.PHONY: help setup test fast lint docs image ci

help: ## List the targets
	@awk -F ': ## ' '/^[a-z]+: ## / { printf "%-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Create .venv with everything that development needs
	.ci/run setup

test: ## Run the tests in parallel
	.ci/run test

fast: ## Run the quick tests
	.ci/run fast

lint: ## Check style, types and import layers
	.ci/run lint

docs: ## Write docs/reference from the docstrings, and check every page
	.ci/run docs

image: ## Build the container image, and run the action in it
	.ci/run image

ci: ## Run everything that CI runs
	.ci/run
