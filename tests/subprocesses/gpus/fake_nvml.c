/* A libnvidia-ml.so.1 that reads its devices from the file named by FAKE_NVML: one a line,
   "uuid name percent used_mib total_mib processes code parent", where code is what asking for the
   device answers (0: fine) and parent is -1, or the number of the GPU that a MIG slice belongs to.
   A first line "init N" makes the initialisation answer N; "hang" makes it never answer.
   FAKE_TOPOLOGY names a file with the lines of GPUs of "nvidia-smi topo -m". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct device { char uuid[96], name[96]; unsigned percent; unsigned long long used, total; unsigned processes; int code, parent; };
static struct device devices[64];
static int count, initialised;

int nvmlInit_v2(void) {
    FILE *file = fopen(getenv("FAKE_NVML"), "r");
    char line[512];
    int answer = 0;
    count = 0;
    if (!file) return 9;
    while (fgets(line, sizeof line, file)) {
        struct device *d = &devices[count];
        if (!strncmp(line, "hang", 4)) sleep(1000);
        if (sscanf(line, "init %d", &answer) == 1) continue;
        if (sscanf(line, "%95s %95s %u %llu %llu %u %d %d", d->uuid, d->name, &d->percent, &d->used,
                   &d->total, &d->processes, &d->code, &d->parent) == 8) count++;
    }
    fclose(file);
    initialised = !answer;
    return answer;
}
int nvmlShutdown(void) { initialised = 0; return 0; }

static struct device *whole(unsigned index) {
    for (int i = 0; i < count; i++)
        if (devices[i].parent < 0 && index-- == 0) return &devices[i];
    return 0;
}
static int number(struct device *d) {
    int index = 0;
    for (struct device *other = devices; other < d; other++) index += other->parent < 0;
    return index;
}
static struct device *slice(struct device *d, unsigned index) {
    for (int i = 0; i < count; i++)
        if (devices[i].parent == number(d) && index-- == 0) return &devices[i];
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned *n) {
    if (!initialised) return 1;
    for (*n = 0; whole(*n); ++*n) {}
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **handle) {
    *handle = whole(index);
    return *handle ? (*handle)->code : 2;
}
int nvmlDeviceGetUUID(struct device *d, char *text, unsigned size) { return snprintf(text, size, "%s", d->uuid) < 0; }
int nvmlDeviceGetName(struct device *d, char *text, unsigned size) { return snprintf(text, size, "%s", d->name) < 0; }
/* No machine has so many: tests lock the device files of none. */
int nvmlDeviceGetMinorNumber(struct device *d, unsigned *minor) { *minor = 900 + number(d); return d->parent < 0 ? 0 : 3; }
/* Read again each time: a test changes it while a meter runs. */
static void read_percent(struct device *d) {
    FILE *file = fopen(getenv("FAKE_NVML"), "r");
    char line[512], uuid[96];
    unsigned percent;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%95s %*s %u", uuid, &percent) == 2 && !strcmp(uuid, d->uuid)) d->percent = percent;
    if (file) fclose(file);
}
int nvmlDeviceGetUtilizationRates(struct device *d, unsigned rates[2]) {
    if (d->parent >= 0) return 3;
    read_percent(d);
    rates[0] = d->percent; rates[1] = 1;
    return 0;
}
int nvmlDeviceGetMemoryInfo(struct device *d, unsigned long long memory[3]) {
    unsigned long long reserved = 480;
    memory[0] = d->total << 20; memory[1] = (d->total - d->used - reserved) << 20;
    memory[2] = (d->used + reserved) << 20;
    return 0;
}
/* As the real one: what the driver keeps for itself (480 MiB) is in no program's use. */
struct apart { unsigned version; unsigned long long total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct apart *memory) {
    if (memory->version != (sizeof *memory | 2 << 24)) return 25;
    memory->total = d->total << 20; memory->reserved = 480 << 20; memory->used = d->used << 20;
    memory->free = memory->total - memory->used - memory->reserved;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned *n, void *infos) {
    int small = *n < d->processes;
    (void)infos;
    *n = d->processes;
    return small ? 7 : 0;
}
int nvmlDeviceGetMigMode(struct device *d, unsigned *now, unsigned *later) {
    *now = *later = slice(d, 0) != 0;
    return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(struct device *d, unsigned *n) { (void)d; *n = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, unsigned index, struct device **handle) {
    *handle = slice(d, index);
    return *handle ? 0 : 6;
}

/* What connects two GPUs, as in the matrix: "NV2", "PHB"; empty without one. */
static const char *connection(struct device *a, struct device *b) {
    static char word[16];
    char *path = getenv("FAKE_TOPOLOGY"), line[4096], *next;
    FILE *file = path ? fopen(path, "r") : 0;
    int row = 0;
    word[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "GPU", 3) || row++ != number(a)) continue;
        strtok_r(line, " \t\n", &next);
        for (int column = 0; column <= number(b); column++) {
            char *found = strtok_r(0, " \t\n", &next);
            snprintf(word, sizeof word, "%s", found ? found : "");
        }
        break;
    }
    if (file) fclose(file);
    return word;
}
static int links(struct device *a, struct device *b) {
    const char *word = connection(a, b);
    return strncmp(word, "NV", 2) ? 0 : atoi(word + 2);
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; };
static int address(struct pci *pci, int bus) {
    memset(pci, 0, sizeof *pci);
    return snprintf(pci->address, sizeof pci->address, "00000000:%02X:00.0", bus) < 0;
}
int nvmlDeviceGetPciInfo_v3(struct device *d, struct pci *pci) {
    return getenv("FAKE_TOPOLOGY") ? address(pci, 1 + number(d)) : 3;
}
/* The links of a GPU in the order of their ends. If there are more than a GPU has, an NVSwitch is
   at the end of each. */
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct device *d, unsigned link, struct pci *pci) {
    int total = 0, most = 0;
    for (int i = 0; i < count; i++) {
        int here = links(d, &devices[i]);
        total += here;
        if (here > most) most = here;
    }
    if (total > 18) return (int)link < most ? address(pci, 0xF0) : 3;
    for (int i = 0, end = 0; i < count; i++) {
        end += links(d, &devices[i]);
        if ((int)link < end) return address(pci, 1 + number(&devices[i]));
    }
    return 3;
}
int nvmlDeviceGetP2PStatus(struct device *a, struct device *b, unsigned index, unsigned *status) {
    *status = index == 2 && links(a, b) ? 0 : 5;
    return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(struct device *a, struct device *b, unsigned *level) {
    const char *names[] = {"PIX", "PXB", "PHB", "NODE", "SYS"}, *word = connection(a, b);
    for (unsigned n = 0; n < 5; n++)
        if (!strcmp(word, names[n])) { *level = 10 * (n + 1); return 0; }
    return 3;
}
