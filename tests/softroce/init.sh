#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of the Soft-RoCE machine: loads rdma_rxe, makes rxe0 over eth0, then runs the commands that come over
# the second serial line. Each step is named on the console, so that a failure says which one worked last.
export PATH=/bin
step() { echo "softroce: $*" >/dev/console; }
die() { step "FAILED: $*"; poweroff -f; }

mount -t devtmpfs dev /dev && mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t tmpfs tmp /tmp || die mounts
step mounted
for name in $(cat /modules/order); do
    insmod /modules/$name.ko 2>/tmp/insmod || [ $name = crc32-pclmul ] || die "module $name: $(cat /tmp/insmod)"
done
step modules loaded
ifconfig lo up
# 4200 gives an RDMA MTU of 4096; 4150 gives only 2048.
ip link set eth0 mtu 4200 up && ip addr add "$address" dev eth0 || die "no eth0, or no address '$address' for it"
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad 2>/dev/null
step network up
rdma link add rxe0 type rxe netdev eth0 || die rdma link add
step rxe0 added

stty -F /dev/ttyS1 raw -echo || die second serial line
exec 3<>/dev/ttyS1
step ready
echo "@READY" >&3
last=0
# A line that has lost bytes on its way is left aside, and so is one that was sent again but had come after all.
while read -r run id length command <&3; do
    [ "$run" = RUN ] && [ ${#command} = "$length" ] && [ "$id" != "$last" ] || continue
    last=$id
    echo "@BEGIN $id" >&3
    sh -c "$command" </dev/null >&3 2>&1
    echo "
@END $id $?" >&3
done
