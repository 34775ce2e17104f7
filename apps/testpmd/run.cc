#include "apps/testpmd/run.hpp"

#include <pthread.h>
#include <rte_cycles.h>
#include <rte_lcore.h>

#include <algorithm>

#include "apps/testpmd/report.hpp"
#include "apps/testpmd/text.hpp"
#include "base/thread.hpp"

namespace rio::testpmd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{5};      // of the conductor
constexpr milliseconds kSilence{25};  // after which a drained card is taken to be empty
constexpr milliseconds kDrainLimit{3000};
constexpr milliseconds kStuckLimit{4000};  // longer than the card's response time-outs
constexpr milliseconds kAskAfter{200};     // of silence: whether a card is gone

/// Call `op(a's, b's)` for each figure and each status.
template <typename Other, typename Op>
void combine(PortFigures* a, const Other& b, Op op) {
  each_figure(*a, b, [op](const char*, uint64_t& x, const auto& y) { op(x, y); });
  for (size_t i = 0; i < kStatusCodes; ++i) {
    op(a->status[i], b.status[i]);
  }
}

}  // namespace

PortFigures& PortFigures::operator+=(const PortFigures& other) {
  combine(this, other, [](uint64_t& x, uint64_t y) { x += y; });
  return *this;
}

PortFigures PortFigures::since(const PortFigures& before) const {
  PortFigures d = *this;
  combine(&d, before, [](uint64_t& x, uint64_t y) { x -= y; });
  return d;
}

Run::Run(const Mode& mode, const RunSetup& setup, Streams streams, std::vector<unsigned> lcores)
    : mode_(mode), setup_(setup), streams_(std::move(streams)), lcores_(std::move(lcores)) {
  lcores_.resize(std::min(lcores_.size(), streams_.size()));
}

Run::~Run() {
  request_stop();
  if (conductor_.joinable()) {
    conductor_.join();
  }
  if (!drained_) {
    for (auto& stream : streams_) {
      (void)stream.release();  // the card may still use its memory
    }
  }
}

int Run::start(std::string* error) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < lcores_.size(); ++i) {
    std::vector<Stream*> mine;
    for (size_t s = i; s < streams_.size(); s += lcores_.size()) {
      mine.push_back(streams_[s].get());
    }
    rc = base::start_thread(
        "rio-poll",
        [this, mine, lcore = lcores_[i]](const std::stop_token& /*stop*/) { poll(mine, lcore); },
        &pollers_.emplace_back());
  }
  if (rc == 0) {
    rc = base::start_thread(
        "rio-conductor", [this](const std::stop_token& /*stop*/) { conduct(); }, &conductor_);
  }
  if (rc != 0) {
    end_pollers();
    return fail(error, "%s", base::why_no_thread(rc).c_str());
  }
  return 0;
}

void Run::end_pollers() {
  phase_.store(Phase::kDone, std::memory_order_release);  // release: pairs with poll()
  pollers_.clear();
}

void Run::poll(const std::vector<Stream*>& mine, unsigned lcore) {
  const rte_cpuset_t cpus = rte_lcore_cpuset(lcore);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
  const std::string name = "rio-poll-" + std::to_string(lcore);
  (void)pthread_setname_np(pthread_self(), name.c_str());
  for (;;) {
    // acquire: what the conductor set up; pairs with its release.
    const Phase phase = phase_.load(std::memory_order_acquire);
    if (phase == Phase::kDone) {
      return;
    }
    if (phase == Phase::kWait) {
      continue;
    }
    const bool may_send = phase == Phase::kRun;
    for (Stream* stream : mine) {
      const uint32_t moved = stream->turn(may_send);
      stream->stats.turns.add(1);
      if (moved != 0) {
        stream->stats.busy_turns.add(1);
        stream->was_busy = true;
      } else if (stream->was_busy) {  // the time is taken when there is some to spare
        stream->was_busy = false;
        stream->stats.last_busy_tsc.set(rte_rdtsc());
      }
    }
  }
}

std::vector<PortFigures> Run::snapshot() const {
  std::vector<PortFigures> all;
  for (const auto& stream : streams_) {
    PortFigures& figures = all.emplace_back();
    figures.label = stream->label();
    combine(&figures, stream->stats, [](uint64_t& x, const Counter& y) { x = y.get(); });
  }
  return all;
}

uint64_t Run::progress() const {
  uint64_t sum = 0;
  for (const auto& stream : streams_) {
    sum += stream->stats.busy_turns.get();
  }
  return sum;
}

DriverCounts Run::driver_now() const {
  DriverCounts sum;
  for (const auto& port : setup_.ports) {
    port->add_counts(&sum);
  }
  return sum;
}

void Run::measure() {
  const Clock::time_point begin = Clock::now();
  Clock::time_point moved_at = begin;
  uint64_t before = progress();
  const auto limit = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(setup_.options.seconds > 0 ? setup_.options.seconds : 1e9));
  const bool sends = std::ranges::any_of(streams_, [](const auto& s) { return s->sends(); });
  for (;;) {
    const Clock::time_point now = Clock::now();
    if (stop_requested_.load(std::memory_order_relaxed) || now - begin >= limit) {
      return;
    }
    if (std::ranges::all_of(streams_, [](const auto& s) { return s->finished(); })) {
      return;
    }
    if (const uint64_t moved = progress(); moved != before) {
      before = moved;
      moved_at = now;
    }
    if ((sends && now - moved_at > kStuckLimit) || (now - moved_at > kAskAfter && card_is_gone())) {
      result_.exit_code = kExitCard;
      return;
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(kTick, begin + limit - now));
  }
}

bool Run::card_is_gone() const {
  return std::ranges::any_of(setup_.ports, [](const auto& port) { return port->card().gone(); });
}

void Run::drain() {
  const Clock::time_point begin = Clock::now();
  Clock::time_point silent_since = begin;
  uint64_t before = progress();
  for (;;) {
    std::this_thread::sleep_for(milliseconds(1));
    const Clock::time_point now = Clock::now();
    const uint64_t moved = progress();
    const bool quiet = std::ranges::all_of(streams_, [](const auto& s) { return s->quiet(); });
    if (moved != before || !quiet) {
      before = moved;
      silent_since = now;
    }
    if (now - silent_since > kSilence) {
      return;
    }
    if (now - begin > kDrainLimit) {
      drained_ = false;
      result_.exit_code = kExitCard;
      return;
    }
  }
}

void Run::conduct() {
  const DriverCounts driver_before = driver_now();
  const std::vector<PortFigures> before = snapshot();
  const uint64_t start_tsc = rte_rdtsc();
  const Clock::time_point begin = Clock::now();
  // release: pairs with poll().
  phase_.store(Phase::kRun, std::memory_order_release);
  measure();
  std::vector<PortFigures> after = snapshot();
  result_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  phase_.store(Phase::kDrain, std::memory_order_release);
  if (!card_is_gone()) {
    drain();
  }
  end_pollers();
  if (setup_.options.count > 0) {  // all of them count, until the last one came
    after = snapshot();
    uint64_t last = start_tsc;
    for (const auto& stream : streams_) {
      last = std::max(last, stream->stats.last_busy_tsc.get());
    }
    result_.seconds = static_cast<double>(last - start_tsc) / static_cast<double>(rte_get_tsc_hz());
  }
  for (size_t i = 0; i < after.size(); ++i) {
    result_.streams.push_back(after[i].since(before[i]));
    result_.sum += result_.streams.back();
    result_.driver_messages += streams_[i]->stats.rx_messages.get();
    result_.violations += streams_[i]->stats.violations.get();
    result_.latency.merge(streams_[i]->latency);
  }
  result_.driver = driver_now();
  for (const auto& [name, count] : kDriverCounts) {
    result_.driver.*count -= driver_before.*count;
  }
  result_.verify = setup_.verifier.totals();
  // release: the result; pairs with wait_for().
  over_.store(true, std::memory_order_release);
}

bool Run::wait_for(milliseconds time) const {
  const Clock::time_point end = Clock::now() + time;
  while (!over_.load(std::memory_order_acquire)) {
    const Clock::time_point now = Clock::now();
    if (now >= end) {
      return false;
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(milliseconds(10), end - now));
  }
  return true;
}

RunResult Run::result() {
  conductor_.join();
  result_.mode = &mode_;
  result_.size_bytes = setup_.size_bytes;
  result_.lcores = static_cast<uint32_t>(lcores_.size());
  result_.verified = setup_.verifier.verifies();
  for (const auto& port : setup_.ports) {
    result_.is_model = result_.is_model || port->card().caps().is_model;
    if (result_.exit_code == kExitCard && port->card().gone()) {
      result_.trouble = port->name +
                        ": the card is gone, its BAR reads all ones; look at the "
                        "slot and dmesg, then reset or rescan it";
    }
  }
  if (result_.exit_code == kExitCard && result_.trouble.empty()) {
    result_.trouble = formatted(
        "nothing moved for %ld s; look at the link (show port info all) and "
        "the rings (show port queues all)",
        kStuckLimit.count() / 1000);
  }
  result_.described =
      mode_.describe != nullptr ? mode_.describe(setup_) : grouped(setup_.size_bytes) + " bytes";
  const bool is_wrong = result_.verified && result_.verify.errors() != 0;
  if (result_.exit_code == kExitOk && (is_wrong || result_.violations != 0)) {
    result_.exit_code = kExitVerify;
  }
  return std::move(result_);
}

}  // namespace rio::testpmd
