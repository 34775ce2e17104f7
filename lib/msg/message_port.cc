#include "lib/msg/message_port.hpp"

#include <sys/random.h>

#include <cerrno>
#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/trouble.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kBuffersMin = 64;
constexpr uint32_t kBuffersMax = 16384;
constexpr uint32_t kShareMin = 4;
constexpr uint32_t kShareMax = 1024;
constexpr uint32_t kTimeoutUsMax = 60'000'000;
constexpr uint32_t kRetryLimit = 250;  // cards count up to 255
constexpr uint32_t kRetryDelayUs = 16;
constexpr uint32_t kLooksMax = 64;
constexpr uint32_t kBarrierRingLog2 =
    9;  // each of 128 groups may have a barrier and its end posted

constexpr uint32_t kBusyMs = 2;     // sleep bound while work is pending that no interrupt announces
constexpr uint32_t kSilentMs = 20;  // sleep bound while an answer of a peer is pending

[[nodiscard]] uint32_t irq_rings() {
  const uint32_t dedicated = ((1u << regs::kDedicatedQueues) - 1)
                             << static_cast<uint32_t>(regs::Ring::kDedicated0);
  return pmd::ring_bit(regs::Ring::kTx) | pmd::ring_bit(regs::Ring::kShared) |
         pmd::ring_bit(regs::Ring::kEvent) | pmd::ring_bit(regs::Ring::kDma) |
         pmd::ring_bit(regs::Ring::kBarrier) | dedicated;
}

[[nodiscard]] EndpointConfig endpoint_config(const PortConfig& port) {
  EndpointConfig config;
  config.queue_pair = port.queue_pair;
  config.dest_id = port.dest_id;
  config.card.response_timeout_us = port.response_timeout_us;
  config.card.receive_timeout_us = 2 * port.response_timeout_us;
  // The card retries for some milliseconds if a peer has no buffer; then Retries takes over. With
  // endless retries a message would block its ring entry and all entries behind it.
  config.card.retry_limit = kRetryLimit;
  config.card.retry_delay_us = kRetryDelayUs;
  config.irq_rings = port.sleeps ? irq_rings() : 0;
  config.queues.tx_log2 = Outbox::kRingLog2;
  config.queues.shared_log2 = Outbox::kRingLog2;
  config.queues.barrier_log2 = kBarrierRingLog2;
  config.queues.barrier_resends = port.barrier_resends();
  return config;
}

/// Draw random numbers for the keys and the instance. @return 0, -errno.
[[nodiscard]] int draw(const PortConfig& config, uint64_t* seed, uint32_t* instance) {
  while (*instance == 0) {
    if (getrandom(seed, sizeof(*seed), 0) != sizeof(*seed) ||
        getrandom(instance, sizeof(*instance), 0) != sizeof(*instance)) {
      const base::Trouble trouble = base::failed("getrandom");
      if (trouble.rc == -EINTR) {
        continue;
      }
      base::log_error("port on %s: %s", config.card.c_str(), base::why(trouble).c_str());
      return trouble.rc;
    }
  }
  return 0;
}

/// Create the DMA object. @return null: the card has no DMA queue.
[[nodiscard]] std::unique_ptr<Dma> make_dma(Endpoint& endpoint) {
  const bool there = (endpoint.queues().rings() & pmd::ring_bit(regs::Ring::kDma)) != 0;
  return there ? std::make_unique<Dma>(endpoint) : nullptr;
}

void add(uint64_t* sum, const pmd::QueueStats& stats) {
  *sum += stats.messages + stats.failed;
}

}  // namespace

int MessagePort::open(const PortConfig& config, std::unique_ptr<MessagePort>* out) {
  if (config.buffers < kBuffersMin || config.buffers > kBuffersMax || config.share < kShareMin ||
      config.share > kShareMax || config.response_timeout_us == 0 ||
      config.response_timeout_us > kTimeoutUsMax) {
    base::log_error(
        "port on %s: buffers are %u to %u and a share %u to %u of them, not %u and %u; a "
        "response time-out is 1 to %u us, not %u",
        config.card.c_str(), kBuffersMin, kBuffersMax, kShareMin, kShareMax, config.buffers,
        config.share, kTimeoutUsMax, config.response_timeout_us);
    return -EINVAL;
  }
  Profile profile;
  std::unique_ptr<Endpoint> endpoint;
  uint64_t seed = 0;
  uint32_t instance = 0;
  int rc = load_profile(config.profile, &profile);
  rc = rc != 0 ? rc : draw(config, &seed, &instance);
  rc = rc != 0 ? rc : Endpoint::open(config.card, endpoint_config(config), &endpoint);
  if (rc != 0) {
    return rc;
  }
  std::unique_ptr<MessagePort> port(
      new (std::nothrow) MessagePort(config, profile, std::move(endpoint), seed, instance));
  if (port == nullptr) {
    return -ENOMEM;
  }
  rc = port->buffers_.start(config.buffers);
  rc = rc != 0 ? rc : port->outbox_.start();
  if (rc == 0) {
    *out = std::move(port);
  }
  return rc;
}

MessagePort::MessagePort(const PortConfig& config, const Profile& profile,
                         std::unique_ptr<Endpoint> endpoint, uint64_t seed, uint32_t instance)
    : endpoint_(std::move(endpoint)),
      dma_(make_dma(*endpoint_)),
      outbox_(*endpoint_, failures_),
      intake_(endpoint_->shared(), buffers_, peers_, sorter_, large_, contexts_, stats_),
      buffers_(*endpoint_),
      peers_(seed, config.first_number),
      large_(objects()),
      inflows_(config.buffers, config.share, peers_, contexts_),
      retries_(outbox_, peers_, stats_),
      health_(*endpoint_),
      control_(outbox_),
      memory_(*endpoint_),
      speaker_(objects(), instance),
      sessions_(objects(), endpoint_->dest_id()),
      silence_(objects()),
      failures_(objects()),
      sorter_(objects()),
      config_(config),
      profile_(profile),
      dest_id_(endpoint_->dest_id()),
      instance_(instance) {}

PortObjects MessagePort::objects() {
  return {config_, *endpoint_, dma_.get(), outbox_,   buffers_, peers_,
          large_,  control_,   memory_,    contexts_, inflows_, retries_,
          health_, speaker_,   sessions_,  silence_,  stats_};
}

MessagePort::~MessagePort() {
  static_cast<void>(endpoint_->close());
}

int MessagePort::route(uint32_t dest_id, uint32_t to, uint32_t from, Kind kind, Route* out) {
  if (to >= kContexts || from >= kContexts || !takes_credit(kind)) {
    return -EINVAL;
  }
  Link* const link = this->link(dest_id);
  if (link == nullptr) {
    return -ENOMEM;
  }
  link->routes.routed |= 1ull << from;
  *out = Outbox::route(*link, to, from, kind);
  return 0;
}

int MessagePort::send(const Route& route, const iovec* iov, int count, uint32_t bytes) {
  if (bytes > kPartBytesMax) {
    return -EMSGSIZE;
  }
  if (!outbox_.may_send(route)) {
    return not_now(route);
  }
  uint8_t* const at = outbox_.begin_message(route, bytes);
  uint8_t* to = at + kHeaderBytes;
  for (int i = 0; i < count; ++i) {
    if (iov[i].iov_len != 0) {
      std::memcpy(to, iov[i].iov_base, iov[i].iov_len);
      to += iov[i].iov_len;
    }
  }
  outbox_.post(*route.link, at, kHeaderBytes + bytes);
  return 0;
}

/// Find out why a message cannot be sent, and start what is needed before it can: a session, or
/// kOpen. @return as send().
int MessagePort::not_now(const Route& route) {
  Link& link = *route.link;
  const uint64_t bit = 1ull << HeaderWords{0, route.word}.to();
  const uint64_t own_bit = 1ull << HeaderWords{0, route.word}.from();
  if (error() != 0) {
    return error();
  }
  if ((link.routes.untold & own_bit) != 0) {
    link.routes.untold &= ~own_bit;
    return link.error;
  }
  if ((link.theirs.refused & bit) != 0) {
    link.theirs.refused &= ~bit;
    return -ECONNREFUSED;
  }
  if ((link.theirs.asked & bit) == 0) {
    link.say.open |= bit;
    link.routes.waiting |= own_bit;
    peers_.want(link);
  } else {
    link.clock.stuck = true;
    peers_.watch(link, 0);
  }
  outbox_.reap();
  progress();
  return -EAGAIN;
}

uint32_t MessagePort::progress() {
  if (--until_look_ == 0) [[unlikely]] {
    check_periodically();
  }
  if (peers_.has_talkers()) [[unlikely]] {
    speaker_.speak();
  }
  bool late = false;
  if (large_.awake()) [[unlikely]] {
    large_.progress();
    late = large_.late_possible();
  }
  return intake_.take(late);
}

void MessagePort::check_periodically() {
  until_look_ = kCallsPerLook;
  outbox_.reap();
  look_for_gone();
  sessions_.check_card();
  silence_.check_ring();
  if (silence_.any_rests()) {
    silence_.check_rests();
  }
  retries_.progress();
  sessions_.check_deadlines();
}

int MessagePort::flush(uint32_t timeout_ms) {
  if (!endpoint_->is_ours()) {
    return 0;  // after fork(): entries in flight belong to the parent
  }
  const uint64_t end = base::now_ns() + uint64_t{timeout_ms} * 1'000'000;
  while (outbox_.ring().outstanding() != 0 || outbox_.stopped() || retries_.has_any() ||
         peers_.has_talkers()) {
    sessions_.check_card();
    if (error() != 0 || base::now_ns() > end) {
      return error() != 0 ? error() : -ETIMEDOUT;
    }
    outbox_.reap();
    progress();
  }
  return 0;
}

void MessagePort::leave() {
  if (sleepers_.any()) {
    sleepers_.wake_if_new(activity());
  }
  sleepers_.unlock();
}

uint64_t MessagePort::activity() const {
  uint64_t sum = sessions_.ended();
  add(&sum, endpoint_->tx().stats());
  add(&sum, endpoint_->shared().stats());
  add(&sum, endpoint_->events().stats());
  if (dma_ != nullptr) {
    add(&sum, endpoint_->dma().stats());
  }
  for (uint32_t i = 0; i < regs::kDedicatedQueues; ++i) {
    add(&sum, endpoint_->queues().dedicated_totals(i).stats);
  }
  return sum;
}

void MessagePort::check_all() {
  health_.check_soon();
  check_periodically();
  for (uint32_t looks = 0; progress() != 0 && looks < kLooksMax;) {
    ++looks;
  }
}

void MessagePort::arm() {
  static_cast<void>(endpoint_->irq_ack());
  static_cast<void>(endpoint_->irq_arm(irq_rings() & endpoint_->queues().rings()));
}

uint32_t MessagePort::sleep_bound_ms() const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const bool busy =
      large_.busy() || outbox_.stopped() || retries_.has_due() || peers_.has_talkers();
  const bool silent = outbox_.ring().outstanding() != 0 || silence_.any_rests();
  const uint64_t now = base::now_ns();
  const uint64_t most = now + (busy ? kBusyMs : silent ? kSilentMs : kSleepBoundMs) * kNsPerMs;
  const uint64_t next = sessions_.next_deadline_ns(most);
  return static_cast<uint32_t>(((next > now ? next - now : 0) + kNsPerMs - 1) / kNsPerMs);
}

}  // namespace rio::msg
