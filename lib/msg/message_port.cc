#include "lib/msg/message_port.hpp"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

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

/// The policy of the configuration, or of the environment. @return 0, -EINVAL (logged).
[[nodiscard]] int read_policy(const PortConfig& config, rail::RailPolicy* out) {
  const char* const common = std::getenv("RIO_RAIL_POLICY");
  const std::string_view name = !config.rail_policy.empty() ? std::string_view(config.rail_policy)
                                : common != nullptr         ? std::string_view(common)
                                                            : std::string_view();
  std::string error;
  if (!name.empty() && rail::parse_rail_policy(name, out, &error) != 0) {
    base::log_error("port on %s: %s", config.card.c_str(), error.c_str());
    return -EINVAL;
  }
  return 0;
}

/// Check a configuration and load its profile. @return 0, -EINVAL (logged), or as load_profile().
[[nodiscard]] int prepare(const PortConfig& config, Profile* profile, rail::RailPolicy* policy) {
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
  const int rc = read_policy(config, policy);
  return rc != 0 ? rc : load_profile(config.profile, profile);
}

}  // namespace

int MessagePort::open(const PortConfig& config, std::unique_ptr<MessagePort>* out) {
  Profile profile;
  rail::RailPolicy policy = rail::RailPolicy::kWeighted;
  Endpoints endpoints;
  int rc = prepare(config, &profile, &policy);
  rc = rc != 0 ? rc : Endpoint::open_all(config.card, endpoint_config(config), &endpoints);
  return rc != 0 ? rc : open_on(std::move(endpoints), config, profile, policy, out);
}

int MessagePort::open(std::vector<BusCard> cards, const PortConfig& config,
                      std::unique_ptr<MessagePort>* out) {
  Profile profile;
  rail::RailPolicy policy = rail::RailPolicy::kWeighted;
  Endpoints endpoints(cards.size());
  int rc = prepare(config, &profile, &policy);
  if (rc == 0 && (cards.empty() || cards.size() > kRailsMax)) {
    base::log_error("port on %s: %zu cards; give it 1 to %u", config.card.c_str(), cards.size(),
                    kRailsMax);
    rc = -EINVAL;
  }
  for (size_t i = 0; rc == 0 && i < cards.size(); ++i) {
    EndpointConfig of_card = endpoint_config(config);
    of_card.dest_id = cards[i].dest_id;
    rc = Endpoint::open(std::move(cards[i].bus), of_card, &endpoints[i]);
  }
  return rc != 0 ? rc : open_on(std::move(endpoints), config, profile, policy, out);
}

int MessagePort::open_on(Endpoints endpoints, const PortConfig& config, const Profile& profile,
                         rail::RailPolicy policy, std::unique_ptr<MessagePort>* out) {
  uint64_t seed = 0;
  uint32_t instance = 0;
  int rc = draw(config, &seed, &instance);
  if (rc != 0) {
    return rc;
  }
  std::unique_ptr<MessagePort> port(
      new (std::nothrow) MessagePort(config, profile, std::move(endpoints), seed, instance));
  if (port == nullptr) {
    return -ENOMEM;
  }
  port->paths_.set_policy(policy);
  rc = port->start();
  if (rc == 0) {
    *out = std::move(port);
  }
  return rc;
}

MessagePort::MessagePort(const PortConfig& config, const Profile& profile, Endpoints endpoints,
                         uint64_t seed, uint32_t instance)
    : endpoints_(std::move(endpoints)),
      rails_(*endpoints_.front(), objects()),
      peers_(seed, config_, rails_),
      paths_(objects()),
      large_(objects()),
      inflows_(config.buffers, config.share, peers_, contexts_),
      retries_(peers_, listening_, stats_),
      speaker_(objects(), instance),
      sessions_(objects(), endpoints_.front()->dest_id()),
      sorter_(objects()),
      config_(config),
      profile_(profile),
      dest_id_(endpoints_.front()->dest_id()),
      instance_(instance) {
  for (size_t i = 1; i < endpoints_.size(); ++i) {
    rails_.add(*endpoints_[i], objects());
  }
}

/// Each rail keeps receive buffers posted, so a port with several has more of them.
int MessagePort::start() {
  const uint32_t more = (rails_.count() - 1) * BufferRing::kPosted;
  int rc = buffers_.create(*endpoints_.front(), config_.buffers + more);
  for (Rail* const rail : rails_) {
    rc = rc != 0 ? rc : rail->start();
  }
  if (rc == 0 && rails_.count() > 1) {
    large_.stay_awake();
    for (const Rail* const rail : rails_) {
      paths_.granted().set_distance(rail->index, rail->endpoint.numa_distance());
    }
    paths_.news().start();
    rc = config_.sleeps ? join_irqs() : 0;
  }
  return rc;
}

MessagePort::CopiedBytes MessagePort::copied_bytes() const {
  const uint64_t measured = profile_.eager_bytes;
  const uint64_t always = measured != 0 ? measured : Profile::kEagerUsual;
  const bool shown = std::all_of(endpoints_.begin(), endpoints_.end(),
                                 [](const auto& each) { return each->shows_messages(); });
  return {always, shown && measured == 0 ? 4096 : always, shown ? 6144u : 0};
}

int MessagePort::join_irqs() {
  irq_set_ = base::Fd(epoll_create1(EPOLL_CLOEXEC));
  base::Trouble trouble = irq_set_.valid() ? base::Trouble{} : base::failed("epoll_create1");
  for (size_t i = 0; !trouble && i < endpoints_.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (epoll_ctl(irq_set_.get(), EPOLL_CTL_ADD, endpoints_[i]->irq_fd(), &event) != 0) {
      trouble = base::failed("epoll_ctl");
    }
  }
  if (trouble) {
    base::log_error("port on %s: %s", config_.card.c_str(), base::why(trouble).c_str());
  }
  return trouble.rc;
}

PortObjects MessagePort::objects() {
  return {config_,  rails_,   buffers_, peers_,    paths_,  large_,     control_, contexts_,
          inflows_, retries_, speaker_, sessions_, sorter_, listening_, stats_};
}

MessagePort::~MessagePort() {
  // The first card's endpoint owns the receive buffers, which all cards write to.
  for (size_t i = endpoints_.size(); i-- > 0;) {
    static_cast<void>(endpoints_[i]->close());
  }
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
  Outbox& outbox = *route.link->outbox;
  if (!outbox.may_send(route)) {
    return not_now(route);
  }
  uint8_t* const at = outbox.begin_message(route, bytes);
  uint8_t* to = at + kHeaderBytes;
  for (int i = 0; i < count; ++i) {
    if (iov[i].iov_len != 0) {
      std::memcpy(to, iov[i].iov_base, iov[i].iov_len);
      to += iov[i].iov_len;
    }
  }
  outbox.post(*route.link, at, kHeaderBytes + bytes);
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
  link.outbox->reap();
  if (link.peer_rails != nullptr && !link.outbox->ring().has_room(Outbox::kReserve)) {
    paths_.choose(link);
  }
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
  if (large_.awake()) [[unlikely]] {
    return progress_more();
  }
  return rails_.first().intake.take(false);
}

/// Progress with large data, or with several rails.
uint32_t MessagePort::progress_more() {
  const bool is_active = large_.is_active();
  if (is_active) {
    large_.progress();
  }
  if (--until_all_ == 0) {
    return take_from_each();
  }
  return busy_rail_->intake.take(is_active && busy_rail_->queues.late_possible());
}

/// A rail without arrivals is looked at only every now and then.
uint32_t MessagePort::take_from_each() {
  until_all_ = kCallsPerRail;
  uint32_t taken = 0;
  for (Rail* const rail : rails_) {
    const uint32_t n = rail->intake.take(rail->queues.late_possible());
    busy_rail_ = n != 0 ? rail : busy_rail_;
    taken += n;
  }
  return taken;
}

/// Take what all cards have completed: a peer that has gone may have used another rail last.
void MessagePort::take_all() {
  for (Rail* const rail : rails_) {
    rail->intake.take_all();
    rail->outbox.reap_each();
  }
  large_.take_all();
}

/// How much the cards have done since the last call.
uint64_t MessagePort::take_news() {
  const uint64_t activity = this->activity();
  return activity - std::exchange(activity_, activity);
}

/// While other threads want the CPU: yields if nothing has arrived for a while. A thread that holds
/// the port's lock yields in leave().
void MessagePort::give_way(Patience& patience) {
  if (patience.poll(take_news() == 0)) {
    ++stats_.yields;
    gives_way_ = config_.threads != Threads::kOne;
    if (!gives_way_) {
      patience.yield();
    }
  }
}

/// Plans the next call of check_periodically(): for the next check(), or earlier where the thread
/// may have to yield.
void MessagePort::plan_look() {
  until_look_ = step_ = Patience::of_this_thread().is_shared() ? kCallsPerYield : until_check_;
}

/// A full step is planned while the CPU is not shared, which Patience need not confirm each time.
void MessagePort::check_periodically() {
  until_check_ -= step_;
  if (step_ != kCallsPerLook) [[unlikely]] {
    if (Patience& patience = Patience::of_this_thread(); patience.is_shared()) {
      give_way(patience);
    }
    if (until_check_ != 0) {
      plan_look();
      return;
    }
  }
  check_next();
}

/// One rail after the other, since messages wait meanwhile; but all as soon as one is in doubt.
void MessagePort::check_next() {
  if (paths_.is_calm() && !retries_.has_any()) {
    check_rail_ = check_rail_ + 1 < rails_.count() ? check_rail_ + 1 : 0;
    check({rails_.begin() + check_rail_, 1});
  } else {
    check({rails_.begin(), rails_.end()});
  }
}

void MessagePort::check(std::span<Rail* const> rails) {
  until_check_ = until_look_ = kCallsPerLook;
  if (step_ != kCallsPerLook) [[unlikely]] {
    plan_look();
  }
  for (Rail* const rail : rails) {
    rail->outbox.reap();
    look_for_gone(*rail);
  }
  sessions_.check_card();
  for (Rail* const rail : rails) {
    rail->silence.check_ring();
    if (rail->silence.any_rests()) {
      rail->silence.check_rests();
    }
  }
  if (--until_paths_ == 0 || !paths_.is_calm()) {
    until_paths_ = kChecksPerPaths;
    Patience::of_this_thread().look(take_news() < kNewsOfBusy);
    plan_look();
    paths_.check();
  }
  retries_.progress();
  sessions_.check_deadlines();
}

int MessagePort::flush(uint32_t timeout_ms) {
  if (!endpoints_.front()->is_ours()) {
    return 0;  // after fork(): entries in flight belong to the parent
  }
  const uint64_t end = base::now_ns() + uint64_t{timeout_ms} * 1'000'000;
  const auto is_out = [&] {
    return std::any_of(rails_.begin(), rails_.end(), [](const Rail* rail) {
      return rail->outbox.ring().outstanding() != 0 || rail->outbox.stopped();
    });
  };
  while (is_out() || retries_.has_any() || peers_.has_talkers()) {
    sessions_.check_card();
    if (error() != 0 || base::now_ns() > end) {
      return error() != 0 ? error() : -ETIMEDOUT;
    }
    for (Rail* const rail : rails_) {
      rail->outbox.reap();
    }
    progress();
  }
  return 0;
}

void MessagePort::leave() {
  if (sleepers_.any()) {
    sleepers_.wake_if_new(activity());
  }
  const bool gives_way = std::exchange(gives_way_, false);
  sleepers_.unlock();
  if (gives_way) [[unlikely]] {
    Patience::of_this_thread().yield();
  }
}

uint64_t MessagePort::activity() const {
  uint64_t sum = sessions_.ended();
  for (const Rail* const rail : rails_) {
    sum += rail->activity();
  }
  return sum;
}

void MessagePort::check_all() {
  for (Rail* const rail : rails_) {
    rail->health.check_soon();
  }
  until_paths_ = 1;
  check({rails_.begin(), rails_.end()});
  uint32_t taken = 1;
  for (uint32_t looks = 0; taken != 0 && looks < kLooksMax; ++looks) {
    until_all_ = 1;
    taken = progress();
  }
}

void MessagePort::arm() {
  for (Rail* const rail : rails_) {
    static_cast<void>(rail->endpoint.irq_ack());
    static_cast<void>(rail->endpoint.irq_arm(irq_rings() & rail->endpoint.queues().rings()));
  }
}

void MessagePort::irq_ack() const {
  for (const std::unique_ptr<Endpoint>& endpoint : endpoints_) {
    static_cast<void>(endpoint->irq_ack());
  }
}

uint32_t MessagePort::sleep_bound_ms() const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  bool busy = large_.busy() || retries_.has_due() || peers_.has_talkers();
  bool silent = false;
  for (const Rail* const rail : rails_) {
    busy = busy || rail->outbox.stopped();
    silent = silent || rail->outbox.ring().outstanding() != 0 || rail->silence.any_rests();
  }
  const uint64_t now = base::now_ns();
  const uint64_t most = now + (busy ? kBusyMs : silent ? kSilentMs : kSleepBoundMs) * kNsPerMs;
  const uint64_t next = sessions_.next_deadline_ns(most);
  return static_cast<uint32_t>(((next > now ? next - now : 0) + kNsPerMs - 1) / kNsPerMs);
}

}  // namespace rio::msg
