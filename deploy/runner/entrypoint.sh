#!/bin/sh
# The reference of what a runner image does: take the credential, wait for Docker, serve one job, exit.
#
#   RUNNER_JITCONFIG                     the runner's credential, good for one job
#   RUNNER_WAIT_FOR_DOCKER_IN_SECONDS    how long a Docker daemon of the image may take to come up; 0: do not wait
#   RUNNER_HOME                          where the Actions runner is, /home/runner if not set
#
# The exit code is the runner's own: 0 after a job, 7 for a version that GitHub refuses.
set -eu

if [ -z "${RUNNER_JITCONFIG:-}" ]; then
    echo "RUNNER_JITCONFIG is not set: this image is started by Switchboard" >&2
    exit 2
fi

# The runner takes its options from such variables too and keeps them from the job; an argument would show in `ps`.
ACTIONS_RUNNER_INPUT_JITCONFIG=$RUNNER_JITCONFIG
export ACTIONS_RUNNER_INPUT_JITCONFIG
unset RUNNER_JITCONFIG

if command -v dockerd >/dev/null 2>&1; then
    docker info >/dev/null 2>&1 || dockerd >/tmp/dockerd.log 2>&1 &
    left=${RUNNER_WAIT_FOR_DOCKER_IN_SECONDS:-60}
    until [ "$left" -le 0 ] || docker info >/dev/null 2>&1; do
        sleep 1
        left=$((left - 1))
    done
fi

cd "${RUNNER_HOME:-/home/runner}"
exec ./run.sh
