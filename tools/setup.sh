#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that the tools are here, once: Debian packages (as root), a pinned Python environment in .venv, a configured
# Verilator, the live page. Quick when nothing is missing. Run from the repository's root.
#     sh tools/setup.sh operating    what `make operating` needs: no Verilator, no C++ compiler
#     sh tools/setup.sh build    what the `penstock` command and `make demo` need
#     sh tools/setup.sh          what tests, linters, proofs and benches need as well
#     sh tools/setup.sh LEVEL --list    prints the Debian packages that are missing for that, and ends
set -eu

level=${1:-all}
case "$level" in operating | build | all) ;; *)
    echo "setup: $level: allowed are operating, build (for \`make demo\`) and all (for \`make test\`, the default)" >&2
    exit 2
    ;;
esac

packages=""
want() { command -v "$1" >/dev/null 2>&1 || packages="$packages $2"; }

needed_to_operate() {
    want gcc gcc
    want make make
    want git git
    want python3 python3
    # Debian splits it off from python3.
    ! command -v python3 >/dev/null 2>&1 || python3 -c 'import ensurepip, venv' 2>/dev/null ||
        packages="$packages python3-venv"
    # For the verbs back end: bindings to libibverbs, which itself is loaded at run time.
    want cmake cmake
    /sbin/ldconfig -p | grep -qE 'libclang(-[0-9]+)?\.so' || packages="$packages libclang-dev"
}

needed_to_test() {
    # cocotb embeds Python's shared library, which Debian splits off.
    ! command -v python3 >/dev/null 2>&1 || python3 - <<'PY' || packages="$packages libpython3-dev"
import ctypes, sys, sysconfig
names = [sysconfig.get_config_var(k) for k in ("INSTSONAME", "LDLIBRARY")]
folder = sysconfig.get_config_var("LIBDIR") or ""
for name in filter(lambda n: n and ".so" in n, names):
    for path in (f"{folder}/{name}", name):
        try:
            ctypes.CDLL(path)
            sys.exit(0)
        except OSError:
            pass
sys.exit(1)
PY
    want ghdl ghdl
    # Netlists with four states (tb/lib/netlist.py).
    want iverilog iverilog
    want tshark tshark
    # What `make bench` compares the packet back end with.
    want iperf3 iperf3
    # The Soft-RoCE machine of tests/softroce: an emulator, and what goes into the machine.
    want qemu-system-x86_64 qemu-system-x86
    want busybox busybox-static
    want rdma iproute2
    [ -e /etc/libibverbs.d/rxe.driver ] || packages="$packages libibverbs1 ibverbs-providers"
    # The virtual board's tests let the kernel ping it.
    want ping iputils-ping
    # The tests of the live page.
    want chromium chromium
    # Not needed, but it saves minutes: the benches compile Verilator's runtime again and again.
    [ "$(id -u)" != 0 ] || want ccache ccache
}

needed_to_operate
[ "$level" = operating ] || want g++ g++
[ "$level" != all ] || needed_to_test
if [ "${2:-}" = --list ]; then
    for package in $packages; do echo "$package"; done
    exit 0
fi
if [ -n "$packages" ]; then
    if [ "$(id -u)" = 0 ]; then
        echo "setup: installing Debian packages:$packages"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
    else
        echo "setup: missing Debian packages. Run this once, then try again:" >&2
        echo "    sudo apt-get install -y$packages" >&2
        exit 2
    fi
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "setup: Python 3.11 or newer is needed, this is $(python3 --version 2>&1)" >&2
    exit 2
}
command -v cargo >/dev/null 2>&1 || {
    echo "setup: cargo is missing: install Rust 1.88 or newer (https://rustup.rs), then try again" >&2
    exit 2
}

# Its stamp names the level; a level's packages are also those of the levels before it.
python="$(python3 --version) $(pwd) $(cat requirements-operating.txt requirements.txt requirements-test.txt | cksum)"
case "$level" in
operating) holds="operating build all" ;;
build) holds="build all" ;;
all) holds=all ;;
esac
installed=$(cat .venv/.penstock 2>/dev/null || true)
case " $holds " in *" ${installed##* } "*) present=${installed% *} ;; *) present= ;; esac
if [ "$present" != "$python" ]; then
    echo "setup: Python packages into .venv"
    [ "${installed% *}" = "$python" ] || rm -rf .venv
    [ -e .venv ] || python3 -m venv .venv
    case "$level" in
    operating) packages="-r requirements-operating.txt" ;;
    build) packages="-r requirements.txt" ;;
    all) packages="-r requirements.txt -r requirements-test.txt" ;;
    esac
    .venv/bin/pip install -q --disable-pip-version-check $packages
    echo "$python $level" > .venv/.penstock
fi
[ "$level" = operating ] || .venv/bin/python tb/lib/toolchain.py >/dev/null
sh tools/web.sh

# Checks the alert rules in tests. Only this program of Debian's package: the package itself would start a server.
if [ "$level" = all ] && ! command -v promtool >/dev/null 2>&1 && [ ! -x .setup/promtool ]; then
    echo "setup: promtool into .setup"
    rm -rf .setup/prometheus
    mkdir -p .setup/prometheus
    [ "$(id -u)" != 0 ] || apt-get update -qq || true
    if (cd .setup/prometheus && apt-get download -qq -o APT::Sandbox::User=root prometheus >/dev/null &&
        dpkg -x prometheus_*.deb .); then
        mv .setup/prometheus/usr/bin/promtool .setup/promtool
    else
        echo "setup: no Debian package prometheus here: install promtool by hand, its test fails without it" >&2
    fi
    rm -rf .setup/prometheus
fi

# The OPC UA client that asks the gateway in tests.
wanted="$(node --version) $(cksum < tests/opcua/package-lock.json)"
if [ "$level" = all ] && [ "$(cat tests/opcua/node_modules/.penstock 2>/dev/null || true)" != "$wanted" ]; then
    echo "setup: npm packages into tests/opcua/node_modules"
    (cd tests/opcua && npm ci --no-audit --no-fund --loglevel=error)
    echo "$wanted" > tests/opcua/node_modules/.penstock
fi
