# Runs steps one after another: for .ci/run and .ci/long, which set `steps` (name, limit in minutes, what it shows) and source
# this with their own arguments. A step NAME is the function step_NAME of .ci/steps.sh.
# shellcheck shell=bash disable=SC2154

self=.ci/$(basename "$0")

if [[ ${1:-} == --step ]]; then # one step, in this process: how the loop below starts each
    # shellcheck source=.ci/steps.sh
    source .ci/steps.sh
    "step_$2"
    exit
fi
if [[ ${1:-} == --list ]]; then
    printf '%s\n' "${steps[@]}"
    exit
fi

known=$(printf '%s\n' "${steps[@]}" | awk '{ print $1 }')
for wanted in "$@"; do
    grep -qx -- "$wanted" <<<"$known" || { echo "no step $wanted: see $self --list" >&2; exit 2; }
done

log=$(mktemp)
running=
trap 'rm -f "$log"' EXIT
trap '[[ -n $running ]] && kill -TERM "$running" 2>/dev/null; exit 130' INT TERM

# The sum of what the test runners said, as one plain line.
totals() {
    awk '/^test result:/ { for (i = 2; i <= NF; i++) {
             if ($i == "passed;") passed += $(i-1); if ($i == "failed;") failed += $(i-1); if ($i == "ignored;") ignored += $(i-1) } }
         END { printf "%d passed, %d failed, %d skipped\n", passed, failed, ignored }' "$log"
}

timings=()
for step in "${steps[@]}"; do
    read -r name limit what <<<"$step"
    if (($#)) && ! printf '%s\n' "$@" | grep -qx -- "$name"; then continue; fi
    printf '\n==> %s: %s\n' "$name" "$what"
    start=$SECONDS
    # Each step has a process group and a limit of its own: one that hangs is ended with all that it started.
    timeout --kill-after=20 "${limit}m" bash "$self" --step "$name" < /dev/null > >(tee -a "$log") 2>&1 &
    running=$!
    status=0
    wait "$running" || status=$?
    running=
    sleep 0.1 # tee's last lines
    if ((status)); then
        ((status == 124 || status == 137)) && printf '<== %s: over its %d minutes\n' "$name" "$limit"
        printf '<== %s failed after %d s (alone again: %s %s)\n\n' "$name" $((SECONDS - start)) "$self" "$name"
        totals
        exit 1
    fi
    printf '<== %s passed in %d s\n' "$name" $((SECONDS - start))
    timings+=("$(printf '%-10s %5d s' "$name" $((SECONDS - start)))")
done

printf '\n'
printf '%s\n' "${timings[@]}"
printf '%-10s %5d s\n\n' together "$SECONDS"
totals
