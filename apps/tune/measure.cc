#include "apps/tune/measure.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace rio::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kLeast = 1024;
constexpr uint32_t kMost = 1u << 20;
constexpr uint32_t kCountMin = 16;
constexpr uint32_t kCountMax = 2048;
constexpr uint32_t kFlushMs = 1000;

[[nodiscard]] double middle(std::vector<double> values) {
  const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), values.begin() + half, values.end());
  return values[static_cast<size_t>(half)];
}

}  // namespace

std::vector<uint32_t> sizes() {
  std::vector<uint32_t> all;
  for (uint32_t size = kLeast; size <= kMost; size *= 2) {
    all.push_back(size);
    if (size < kMost) {
      all.push_back(size + size / 2);
    }
  }
  return all;
}

uint64_t border(const std::vector<Point>& points) {
  // The loss, as a part of the quicker one's time, so that each size counts alike.
  const auto loss = [](double taken, double other) { return taken / std::min(taken, other) - 1; };
  double best = 0;
  uint64_t best_at = 0;
  for (size_t copies = 0; copies <= points.size(); ++copies) {
    double lost = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      const Point& p = points[i];
      lost += i < copies ? loss(p.copied_ns, p.moved_ns) : loss(p.moved_ns, p.copied_ns);
    }
    if (copies == 0 || lost < best) {
      best = lost;
      best_at = copies == 0 ? points[0].size_bytes / 2 : points[copies - 1].size_bytes;
    }
  }
  return std::clamp(best_at, msg::Profile::kEagerMin, msg::Profile::kEagerMax);
}

Spread spread(const std::vector<Point>& points) {
  std::vector<uint64_t> borders;
  for (size_t round = 0; round < points[0].copied_rounds.size(); ++round) {
    std::vector<Point> one;
    for (const Point& point : points) {
      one.push_back({point.size_bytes, point.copied_rounds[round], point.moved_rounds[round]});
    }
    borders.push_back(border(one));
  }
  std::sort(borders.begin(), borders.end());
  const size_t left_out = borders.size() / 4;
  return {borders[left_out], borders[borders.size() - 1 - left_out]};
}

Side::Side() : memory_(kMost) {}

int Side::open(const std::string& card) {
  msg::PortConfig config;
  config.card = card;
  config.profile = "none";
  int rc = msg::MessagePort::open(config, &port_);
  for (uint16_t way = 0; way < kWays && rc == 0; ++way) {
    tag::TaggedConfig one;
    one.eager_bytes = way == kCopied ? uint64_t{kMost} : 1;
    rc = ends_[way].open(*port_, way, one);
  }
  return rc != 0 ? apps::complain(card, -rc) : 0;
}

/// An empty message to the other side, or from it. It has the tag of the data: no message of this
/// way may be under way in the same direction.
int Side::signal(Way way, bool sends) {
  return sends ? streams_[way].send_one(0) : streams_[way].receive_one(0);
}

int Side::meet(uint32_t peer) {
  int rc = 0;
  for (const Way way : {kCopied, kMoved}) {
    ends_[way].set_peer(peer);
    rc = rc != 0 ? rc : signal(way, true);
    rc = rc != 0 ? rc : signal(way, false);
  }
  return rc;
}

/// @param each_ns time of a message, until the receiver has said that all are there.
int Side::round(const Options& options, Way way, uint32_t size_bytes, bool sends, double* each_ns) {
  const uint32_t count = std::clamp(options.round_bytes / size_bytes, kCountMin, kCountMax);
  const auto start = Clock::now();
  Stream& stream = streams_[way];
  int rc = sends ? stream.send(size_bytes, count) : stream.receive(size_bytes, count);
  rc = rc != 0 ? rc : signal(way, !sends);
  const std::chrono::duration<double, std::nano> took = Clock::now() - start;
  *each_ns = took.count() / count;
  return rc;
}

int Side::point(const Options& options, bool sends, Point* out) {
  std::array<std::vector<double>, kWays> times;
  // The first round warms up. Ways by turns, so that a slow minute hits both.
  for (uint32_t i = 0; i <= options.rounds; ++i) {
    for (const Way way : {kCopied, kMoved}) {
      double each_ns = 0;
      if (const int rc = round(options, way, out->size_bytes, sends, &each_ns); rc != 0) {
        return rc;
      }
      if (i != 0) {
        times[way].push_back(each_ns);
      }
    }
  }
  out->copied_ns = middle(times[kCopied]);
  out->moved_ns = middle(times[kMoved]);
  out->copied_rounds = std::move(times[kCopied]);
  out->moved_rounds = std::move(times[kMoved]);
  return 0;
}

int Side::run(const Options& options, bool sends, std::vector<Point>* out) {
  const bool shows = sends && isatty(STDERR_FILENO) != 0;
  const std::vector<uint32_t> all = sizes();
  for (const uint32_t size : all) {
    if (shows) {
      std::fprintf(stderr, "\rmeasuring  %zu of %zu sizes", out->size(), all.size());
    }
    Point next;
    next.size_bytes = size;
    if (const int rc = point(options, sends, &next); rc != 0) {
      return rc;
    }
    out->push_back(next);
  }
  if (shows) {
    std::fprintf(stderr, "\r%40s\r", "");
  }
  // Neither goes while the other needs it.
  int rc = signal(kCopied, sends);
  rc = rc != 0 ? rc : signal(kCopied, !sends);
  return rc == 0 && ends_[kCopied].flush(kFlushMs) == -ENODEV ? -ENODEV : rc;
}

}  // namespace rio::tune
