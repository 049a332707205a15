#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the live page, web/ into build/web, once: quick when nothing has changed. Run from the repository's root.
# `sh tools/web.sh packages` stops after the npm packages.
set -eu

command -v node >/dev/null 2>&1 || {
    echo "web: Node.js is missing: install version 20.19 or newer (https://nodejs.org), then try again" >&2
    exit 2
}
node -e 'const [a, b] = process.versions.node.split("."); process.exit(a * 100 + +b < 2019 ? 1 : 0)' || {
    echo "web: Node.js 20.19 or newer is needed, this is $(node --version)" >&2
    exit 2
}
mkdir -p build
# Builds of several crates may ask at once.
if command -v flock >/dev/null 2>&1 && [ "${PENSTOCK_WEB_LOCK:-}" != held ]; then
    PENSTOCK_WEB_LOCK=held exec flock build/web.lock sh tools/web.sh "$@"
fi

wanted="$(node --version) $(cksum < web/package-lock.json)"
if [ "$(cat web/node_modules/.penstock 2>/dev/null || true)" != "$wanted" ]; then
    echo "web: npm packages into web/node_modules"
    (cd web && npm ci --no-audit --no-fund --loglevel=error)
    echo "$wanted" > web/node_modules/.penstock
fi
[ "${1:-}" != packages ] || exit 0

wanted="$wanted $(cat web/index.html web/vite.config.ts web/src/* | cksum)"
if [ "$(cat build/web/.penstock 2>/dev/null || true)" != "$wanted" ]; then
    echo "web: the page into build/web"
    rm -rf build/web
    (cd web && npx --no-install vite build --logLevel warn)
    echo "$wanted" > build/web/.penstock
fi
