#!/bin/sh
# Stands in for the Actions runner: speaks the protocol of the simulated GitHub with nothing but busybox.
# STAND_IN=silent never goes online. As the real one it exits 0 whatever goes wrong.

# In the background, so that a signal is heard while it waits.
calmly() {
    "$@" &
    child=$!
    wait "$child"
}
trap 'echo "Exiting on a signal"; kill "$child" 2>/dev/null; exit 143' TERM INT

if [ "${STAND_IN:-}" = silent ]; then
    echo "This runner stays silent"
    while true; do calmly sleep 3600; done
fi

field() { # of a flat JSON object on standard input
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}
config=$ACTIONS_RUNNER_INPUT_JITCONFIG
files=$(echo "$config" | base64 -d)
settings=$(echo "$files" | field .runner | base64 -d)
token=$(echo "$files" | field .credentials | base64 -d | field token)
server=$(echo "$settings" | sed -n 's/.*"serverUrl": *"\([^"]*\)".*/\1/p')

ask() { # path, and what to post
    path=$1
    shift
    calmly wget -q -O /tmp/answer --header "Authorization: Bearer $token" --header "X-Runner-Version: 2.335.0" \
        --header "Content-Type: application/json" "$@" "$server/_runner/$path"
}

echo "Current runner version: '2.335.0'"
until ask session --post-data "$config"; do
    echo "Runner connect error. Retrying until reconnected."
    calmly sleep 2
done
runner=$(field runner_id </tmp/answer)
echo "Listening for Jobs"
job=
while [ -z "$job" ]; do
    ask "$runner/job?wait=20" || { echo "The runner no longer exists on the server"; exit 0; }
    job=$(field job_id </tmp/answer)
done
conclusion=$(field conclusion </tmp/answer)
echo "Running job: $job"
calmly sleep "$(field seconds </tmp/answer)"
until ask "$runner/finish" --post-data "{\"job_id\": $job, \"conclusion\": \"$conclusion\"}"; do
    calmly sleep 2
done
echo "Job $job completed with result: $conclusion"
