#!/usr/bin/env bash
# A kind cluster with boards: nodes that carry the board label and offer the extended resource, and the runner image.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=switchboard
image=switchboard.local/runner:1
kubeconfig=${XDG_CACHE_HOME:-$HOME/.cache}/switchboard/kind.kubeconfig
mkdir -p "$(dirname "$kubeconfig")"

kind create cluster --name "$name" --config hack/kind/cluster.yaml --kubeconfig "$kubeconfig" --wait 2m
docker build --tag "$image" --file tests/e2e/runner/Dockerfile .
kind load docker-image --name "$name" "$image"

offer() { # board, slots
    for node in $(kubectl --kubeconfig "$kubeconfig" get nodes -l "riseproject.dev/board=$1" -o name); do
        kubectl --kubeconfig "$kubeconfig" patch "$node" --subresource=status --type=json \
            -p "[{\"op\": \"add\", \"path\": \"/status/capacity/riseproject.com~1runner\", \"value\": \"$2\"}]"
    done
}
offer rv1 1
offer bench 4

# The boards reach the simulated GitHub by the address that this machine has on kind's network.
host=$(docker network inspect kind --format '{{range .IPAM.Config}}{{println .Gateway}}{{end}}' | grep -m 1 '\.')
echo "KUBECONFIG=$kubeconfig SWITCHBOARD_E2E=1 SWITCHBOARD_E2E_GITHUB_HOST=$host make e2e"
