#include "pmd/selftest/bench.hpp"

#include <cerrno>
#include <cstring>

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

std::string Bench::reset() {
  card_.reset();
  pmd::CardConfig config;
  config.dest_ids = {config_.dest_id};
  config.response_timeout_us = kResponseTimeoutUs;
  config.receive_timeout_us = 2 * kResponseTimeoutUs;
  config.retry_limit = kRetryLimit;
  config.dest_id_size = config_.dest_id > 0xFFFF ? 2 : 1;
  if (const int rc = pmd::Card::open(bus_, config, &card_); rc != 0) {
    gone = rc == -ENODEV;
    return std::string("the card cannot be reset: ") + std::strerror(-rc);
  }
  if (memory_.va == nullptr) {
    if (const int rc = bus_.dma_alloc(End::kMemoryBytes, End::kPageBytes, &memory_); rc != 0) {
      return std::string("no memory that the card can reach: ") + std::strerror(-rc);
    }
  }
  return "";
}

std::string Bench::loop(const Work& work, const pmd::QueuePairConfig& queues, bool need_link) {
  if (need_link && !wait_link()) {
    return "the link is down";
  }
  std::unique_ptr<pmd::QueuePair> pair;
  if (const int rc = card_->open_queue_pair(0, queues, &pair); rc != 0) {
    gone = gone || rc == -ENODEV;
    return std::string("queue pair 0 cannot be opened: ") + std::strerror(-rc);
  }
  const End end{.card = card_.get(),
                .pair = pair.get(),
                .hook = bus_.poll_hook(0),
                .dest_id = config_.dest_id,
                .memory = memory_};
  Exchange exchange(end, end, {.seed = config_.seed, .patience_ms = config_.patience_ms});
  std::string wrong = work(*pair, exchange);
  const int rc = pair->stop();
  gone = gone || exchange.gone() || rc == -ENODEV;
  leave_memory_ = leave_memory_ || (rc != 0 && rc != -ENODEV);
  if (rc != 0 && wrong.empty()) {
    wrong = std::string("the rings do not stop: ") + std::strerror(-rc);
  }
  return wrong;
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
  gone = gone || card_->gone();
  return up;
}

void Bench::tell(const char* step, uint64_t done, uint64_t total) {
  if (progress_) {
    progress_(step, done, total);
  }
}

}  // namespace rio::selftest
