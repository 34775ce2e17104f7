#include "pmd/selftest/bench.hpp"

#include <optional>

#include "pmd/dev/wait.hpp"

namespace rio::selftest {
namespace {

// A busy machine may stop an emulated card for a while; a lost response is found all the same.
constexpr uint32_t kResponseTimeoutUs = 1000000;
constexpr uint32_t kRetryLimit = 100000;

}  // namespace

Bench::Bench(pmd::Bus& bus, const Config& config, Progress progress)
    : bus_(bus), config_(config), progress_(std::move(progress)) {}

Bench::~Bench() {
  if (memory_.va != nullptr && !leave_memory_) {
    bus_.dma_free(memory_);
  }
}

void Bench::begin(const char* step) {
  tally = {.tell = [this, step](uint64_t done, uint64_t total) {
    if (progress_) {
      progress_(step, done, total);
    }
  }};
  tally.add(0);
}

void Bench::reset() {
  card_.reset();
  pmd::CardConfig config;
  config.dest_ids = {config_.dest_id};
  config.response_timeout_us = kResponseTimeoutUs;
  config.receive_timeout_us = 2 * kResponseTimeoutUs;
  config.retry_limit = kRetryLimit;
  config.dest_id_size = config_.dest_id > 0xFFFF ? 2 : 1;
  check(pmd::Card::open(bus_, config, &card_), "the card cannot be reset");
  if (memory_.va == nullptr) {
    check(bus_.dma_alloc(End::kMemoryBytes, End::kPageBytes, &memory_),
          "no memory that the card can reach");
  }
}

void Bench::loop(const Work& work, const pmd::QueuePairConfig& queues, bool need_link) {
  if (need_link && !wait_link()) {
    throw Fault("the link is down");
  }
  std::unique_ptr<pmd::QueuePair> pair;
  check(card_->open_queue_pair(0, queues, &pair), "queue pair 0 cannot be opened");
  const End end{.card = card_.get(),
                .pair = pair.get(),
                .hook = bus_.poll_hook(0),
                .dest_id = config_.dest_id,
                .memory = memory_};
  Exchange exchange(end, end, {.seed = config_.seed, .patience_ms = config_.patience_ms}, tally);
  std::optional<Fault> found;
  try {
    work(exchange);
  } catch (const Fault& fault) {
    found = fault;
  }
  const int rc = pair->stop();
  leave_memory_ = leave_memory_ || (rc != 0 && rc != -ENODEV);
  if (found) {
    throw *found;
  }
  check(rc, "the rings do not stop");
}

bool Bench::wait_link() {
  if (!card_->blocks().has_port()) {
    return true;
  }
  pmd::Waiter waiter(bus_.poll_hook(0), config_.link_timeout_ms);
  bool up = card_->link().up;
  while (!up && !card_->gone() && waiter.pause()) {
    up = card_->link().up;
  }
  return up;
}

}  // namespace rio::selftest
