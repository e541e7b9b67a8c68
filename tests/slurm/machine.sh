# Makes a machine of the namespaces (network, mounts, host name) that it runs in, and goes on as
# what keeps its daemons. cluster.py sets name, folder, gpus, and for a node number and controller.
set -e
hostname "$name"
ip link set lo up

# All folders are shared but those where processes of two machines could clash.
mount -t tmpfs reperf /run
mount -t tmpfs reperf /dev/shm
mkdir /run/munge /run/log
mount --bind "$folder/log" /run/log
mount --bind "$folder/etc" /etc/slurm
mount --bind /etc/slurm/hosts /etc/hosts

if [ "$name" = ctl ]; then
    ip link add bridge type bridge
    ip address add 10.99.0.100/24 dev bridge
    ip link set bridge up
    daemon="slurmctld -D"
    own_proc=  # commands that run here come with process numbers from outside
else
    ip link add eth0 type veth peer name "$name" netns "$controller"
    nsenter --target "$controller" --net ip link set "$name" master bridge up
    ip address add "10.99.0.$number/24" dev eth0
    ip link set eth0 up
    # On this tmpfs device files work, whatever the options of the folder's file system.
    for gpu in $(seq 0 $((gpus - 1))); do mknod -m 666 "/run/gpu$gpu" c 1 3; done
    daemon="slurmd -D"
    own_proc=--mount-proc
fi

echo up
exec >&2
munged="munged --key-file=/etc/slurm/munge.key --seed-file=/run/munge/seed"
munged="$munged --log-file=/run/log/munged-$name.log"
# The shell is the first process of its own numbering: when it ends, the kernel kills the rest.
exec unshare --fork --kill-child --pid $own_proc sh -c "($munged && $daemon) & wait"
