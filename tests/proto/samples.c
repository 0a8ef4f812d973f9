/* Messages with every field set: see the header. */
#include "tests/proto/samples.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static uint8_t secret[32] = {1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0xff};
static uint8_t model[16] = {0xa0, 0xa1, 0xa2};

static uint32_t small[] = {0, 1, 300, 70000, UINT32_MAX};
static uint64_t large[] = {0, 1, 300, 70000, UINT64_MAX};
static protobuf_c_boolean flags[] = {1, 0, 1, 0, 1};

#define TEXT(text) ((char *)(text))

const struct samples_request *samples_requests(size_t *ret_count)
{
    static Kapok__Hello hello = {.role = TEXT("trunk")};
    static Kapok__Stats stats;
    static Kapok__Hint hint = {.layer = 92, .n_experts = 5, .experts = small};
    static Kapok__Compute compute = {
        .layer = 1, .bands = 0xfff, .rows = 5, .n_counts = 5, .counts = small};
    static Kapok__Open open = {.sequence = 1ULL << 40, .positions = 1048576};
    static Kapok__Close close = {.sequence = 7};
    static Kapok__Fork fork = {.from = 7, .to = 8, .positions = 100};
    static Kapok__Step step = {.number = 1ULL << 63,
                               .n_sequence = 5,
                               .sequence = large,
                               .n_position = 5,
                               .position = small,
                               .n_token = 5,
                               .token = small,
                               .n_logits = 5,
                               .logits = flags,
                               .n_commit_sequence = 2,
                               .commit_sequence = large,
                               .n_commit_length = 2,
                               .commit_length = small};
    static Kapok__Cancel cancel = {.number = 81};
    static struct samples_request list[] = {
        {"Hello", {.body_case = KAPOK__REQUEST__BODY_HELLO, .hello = &hello}},
        {"Stats", {.body_case = KAPOK__REQUEST__BODY_STATS, .stats = &stats}},
        {"Hint", {.body_case = KAPOK__REQUEST__BODY_HINT, .hint = &hint}},
        {"Compute", {.body_case = KAPOK__REQUEST__BODY_COMPUTE, .compute = &compute}},
        {"Open", {.body_case = KAPOK__REQUEST__BODY_OPEN, .open = &open}},
        {"Close", {.body_case = KAPOK__REQUEST__BODY_CLOSE, .close = &close}},
        {"Fork", {.body_case = KAPOK__REQUEST__BODY_FORK, .fork = &fork}},
        {"Step", {.body_case = KAPOK__REQUEST__BODY_STEP, .step = &step}},
        {"Cancel", {.body_case = KAPOK__REQUEST__BODY_CANCEL, .cancel = &cancel}},
    };
    hello.base.descriptor = &kapok__hello__descriptor;
    stats.base.descriptor = &kapok__stats__descriptor;
    hint.base.descriptor = &kapok__hint__descriptor;
    compute.base.descriptor = &kapok__compute__descriptor;
    open.base.descriptor = &kapok__open__descriptor;
    close.base.descriptor = &kapok__close__descriptor;
    fork.base.descriptor = &kapok__fork__descriptor;
    step.base.descriptor = &kapok__step__descriptor;
    cancel.base.descriptor = &kapok__cancel__descriptor;
    for (size_t i = 0; i < COUNT(list); i++) {
        Kapok__Request *m = &list[i].message;
        m->base.descriptor = &kapok__request__descriptor;
        m->secret = (ProtobufCBinaryData){sizeof secret, secret};
        m->model = (ProtobufCBinaryData){sizeof model, model};
        m->version = 1;
        m->number = 1000 + i;
    }
    *ret_count = COUNT(list);
    return list;
}

static Kapok__HelloReply *sample_hello(void)
{
    static Kapok__TileBox box[] = {{.layer_first = 1,
                                    .layer_end = 93,
                                    .expert_first = 0,
                                    .expert_end = 896,
                                    .bands = 0x3f},
                                   {.layer_first = 5,
                                    .layer_end = 6,
                                    .expert_first = 7,
                                    .expert_end = 8,
                                    .bands = UINT64_MAX}};
    static Kapok__TileBox *boxes[] = {&box[0], &box[1]};
    static Kapok__TrunkServes trunk = {.layer_first = 0,
                                       .layer_end = 47,
                                       .rows_most = 256,
                                       .logits_most = 16,
                                       .sequences_most = 64,
                                       .positions_most = 1ULL << 33,
                                       .ready = 1,
                                       .tiles_needed = 989184,
                                       .tiles_covered = 989183,
                                       .missing = TEXT("nobody holds band 3 of expert 2")};
    static Kapok__HelloReply hello = {.role = TEXT("trunk"),
                                      .version = TEXT("0.1.0"),
                                      .instance = UINT64_MAX - 1,
                                      .payload_most = 1 << 28,
                                      .n_tiles = 2,
                                      .tiles = boxes,
                                      .trunk = &trunk};
    box[0].base.descriptor = box[1].base.descriptor = &kapok__tile_box__descriptor;
    trunk.base.descriptor = &kapok__trunk_serves__descriptor;
    hello.base.descriptor = &kapok__hello_reply__descriptor;
    return &hello;
}

static Kapok__StatsReply *sample_stats(void)
{
    static Kapok__Counter counter = {.name = TEXT("bytes_read"), .value = 1.5e9};
    static Kapok__PeerStats peer = {.address = TEXT("tcp://127.0.0.1:7001"),
                                    .state = TEXT("refused"),
                                    .reason = TEXT("the peer has another model"),
                                    .age = 0.25,
                                    .bytes_sent = 1ULL << 41,
                                    .bytes_received = 3,
                                    .requests = 5,
                                    .straggler = 12.5,
                                    .tiles = 989184};
    static Kapok__AreaStats area = {.name = TEXT("ring"), .bytes = 1 << 28};
    static Kapok__Percentiles latency = {
        .name = TEXT("compute"), .p50 = 1, .p90 = 2, .p99 = 3, .most = 4, .count = 1000};
    static Kapok__Counter *counters[] = {&counter};
    static Kapok__PeerStats *peers[] = {&peer};
    static Kapok__AreaStats *areas[] = {&area};
    static Kapok__Percentiles *latencies[] = {&latency};
    static Kapok__StatsReply stats = {.n_counters = 1,
                                      .counters = counters,
                                      .n_peers = 1,
                                      .peers = peers,
                                      .n_areas = 1,
                                      .areas = areas,
                                      .n_latencies = 1,
                                      .latencies = latencies,
                                      .now = TEXT("step 81, layer 37 of 93")};
    counter.base.descriptor = &kapok__counter__descriptor;
    peer.base.descriptor = &kapok__peer_stats__descriptor;
    area.base.descriptor = &kapok__area_stats__descriptor;
    latency.base.descriptor = &kapok__percentiles__descriptor;
    stats.base.descriptor = &kapok__stats_reply__descriptor;
    return &stats;
}

const struct samples_reply *samples_replies(size_t *ret_count)
{
    static Kapok__ComputeReply compute = {.bytes_read = 17547264,
                                          .tiles_read = 12,
                                          .tiles_hit = 3,
                                          .us_queued = 4,
                                          .us_reading = 5,
                                          .us_computing = 6};
    static Kapok__StepReply step = {.trunk_bytes = 108811877376,
                                    .expert_bytes = 25829572608,
                                    .expert_hits = 3,
                                    .us_total = 4,
                                    .us_weights = 5,
                                    .us_experts = 6};
    static struct samples_reply list[] = {
        {"HelloReply", {.number = 1, .body_case = KAPOK__REPLY__BODY_HELLO}},
        {"StatsReply", {.number = 2, .body_case = KAPOK__REPLY__BODY_STATS}},
        {"ComputeReply",
         {.number = 3, .body_case = KAPOK__REPLY__BODY_COMPUTE, .compute = &compute}},
        {"StepReply", {.number = 4, .body_case = KAPOK__REPLY__BODY_STEP, .step = &step}},
        {"error", {.number = UINT64_MAX, .error = -110, .reason = TEXT("no answer")}},
        {"nothing", {.number = 6}},
    };
    compute.base.descriptor = &kapok__compute_reply__descriptor;
    step.base.descriptor = &kapok__step_reply__descriptor;
    list[0].message.hello = sample_hello();
    list[1].message.stats = sample_stats();
    for (size_t i = 0; i < COUNT(list); i++) {
        list[i].message.base.descriptor = &kapok__reply__descriptor;
        if (!list[i].message.reason)
            list[i].message.reason = TEXT("");
    }
    *ret_count = COUNT(list);
    return list;
}
