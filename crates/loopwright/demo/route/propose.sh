# The proposer: called once per trial, in a work tree of its own, to change the project.
#
# This one is scripted, so that the demo needs no key and no network and always comes out alike: it
# applies the change that was prepared for this trial. An agent would stand here instead, as in
# `propose = "my-agent --prompt-file $LOOPWRIGHT_BRIEF_MARKDOWN"`. Some of the prepared changes are
# bad on purpose, and two of them cheat.
set -eu

trial=${LOOPWRIGHT_TRIAL:?is not set: this is started by loopwright run}
changes=${COURIER_CHANGES:?is not set: it names the directory of the prepared changes}

# What an agent would begin with: the brief says what is to be beaten and what became of the trials
# before. It is JSON, one field a line; a script only has to pick.
if [ -r "${LOOPWRIGHT_BRIEF:-}" ]; then
    to_beat=$(sed -n 's/^  "incumbent": \([0-9.]*\).*/\1/p' "$LOOPWRIGHT_BRIEF")
    last_why=$(sed -n 's/^ *"why": "\(.*\)".*/\1/p' "$LOOPWRIGHT_BRIEF" | tail -n 1)
    echo "to beat: ${LOOPWRIGHT_METRIC:-metric} ${to_beat%.0}"
    echo "last trial: $last_why"
fi

for change in "$changes/$(printf %02d "$trial")"-*.patch; do
    if [ ! -f "$change" ]; then
        echo "no change is prepared for trial $trial"
        exit 0
    fi
    # One of them has nothing to apply.
    if grep -q '^diff --git ' "$change"; then
        git apply "$change"
    fi
    # The first line of a change says what it is; the last line of a proposal does, too.
    head -n 1 "$change"
done
