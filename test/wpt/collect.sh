#!/usr/bin/env bash
# test/wpt/collect.sh <repository> <folder>: takes what `npm run test:wpt` runs out of a git repository of the Web Platform
# Tests, such as
#   git clone --depth 1 --filter=blob:none --no-checkout https://github.com/web-platform-tests/wpt
# (bare is enough), and puts it into the folder. Then: CARPOOL_WPT=<folder> npm run test:wpt
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
repository=$1 folder=$2
shift 2
# What areas.ts runs, and what the tests of it load. Further arguments are areas to take instead of all.
areas=("$@")
[ ${#areas[@]} -gt 0 ] || areas=(compression console dom/abort dom/events encoding fetch/api fetch/data-urls FileAPI hr-time
  html/webappapis/atob html/webappapis/microtask-queuing html/webappapis/structured-clone html/webappapis/timers mimesniff
  performance-timeline streams url urlpattern user-timing WebCryptoAPI webmessaging xhr/formdata)
mkdir -p "$folder"
paths=(resources/testharness.js resources/idlharness.js resources/webidl2 resources/WebIDLParser.js interfaces common LICENSE.md)
for path in "${areas[@]}" "${paths[@]}"; do
  git -C "$repository" cat-file -e "HEAD:$path" 2>/dev/null || { echo "$path is not there" >&2; continue; }
  # Nested repositories and pages are not needed, and pages are most of it.
  git -C "$repository" ls-tree -r --name-only HEAD "$path" | grep -E '\.(js|json|idl|md|txt|py)$' || true
done | sort -u > "$folder/.files"
if [ "$(git -C "$repository" config remote.origin.promisor || true)" = true ]; then
  # A clone without contents would get each by itself.
  git -C "$repository" ls-tree -r HEAD "${areas[@]}" "${paths[@]}" |
    awk 'NR == FNR { wanted[$0]; next } { name = $0; sub(/^[^\t]*\t/, "", name) }
    name in wanted { print $3 }' "$folder/.files" - | sort -u |
    git -C "$repository" fetch --quiet --no-tags --no-write-fetch-head --filter=blob:none --stdin origin
fi
# By an index of its own, as the repository may be in use. `git archive` would get all there is.
GIT_INDEX_FILE=$(mktemp -u) git --git-dir="$(git -C "$repository" rev-parse --absolute-git-dir)" --work-tree="$folder" \
  checkout --quiet HEAD --pathspec-from-file="$folder/.files"
echo "$(wc -l < "$folder/.files") files, of $(git -C "$repository" log -1 --format='%h, %cs')"
