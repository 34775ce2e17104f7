/// @file
/// Times of tagged messages that are copied, and of such that dedicated queues move.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/tag_end.hpp"
#include "apps/tune/options.hpp"

namespace rio::tune {

/// Of one size, nanoseconds a message: the middle one of the rounds.
struct Point {
  uint32_t size_bytes = 0;
  double copied_ns = 0;
  double moved_ns = 0;
  std::vector<double> copied_rounds = {};  ///< as many for each size
  std::vector<double> moved_rounds = {};
};

/// How far apart the borders of single rounds are: those in the middle, a quarter of the rounds
/// left out at each end.
struct Spread {
  static constexpr uint64_t kApartMax = 4;

  uint64_t low;
  uint64_t high;
  /// The rounds do not agree: what their middle says is chance.
  [[nodiscard]] bool is_vague() const { return high > kApartMax * low; }
};

/// Sizes that are measured, ascending.
[[nodiscard]] std::vector<uint32_t> sizes();

/// The size up to which copying is quicker: the one at which those who have to copy longer ones, or
/// move shorter ones, lose least. @param points ascending, at least one. @return within Profile.
[[nodiscard]] uint64_t border(const std::vector<Point>& points);

/// @param points at least one, each with rounds.
[[nodiscard]] Spread spread(const std::vector<Point>& points);

/// One of the two processes; both go through the same sizes, rounds and ways.
class Side {
 public:
  Side();
  /// @return 0, or -errno, which is on stderr; the log has the reason.
  [[nodiscard]] int open(const std::string& card);

  /// The two hear of each other. @param peer destID.
  [[nodiscard]] int meet(uint32_t peer);
  [[nodiscard]] uint32_t dest_id() const { return port_->dest_id(); }
  [[nodiscard]] bool is_emulated() const { return port_->endpoint().caps().is_model; }
  /// All of it. The side that sends shows on a terminal how far it is. @return as open(); what
  /// failed is on stderr.
  [[nodiscard]] int run(const Options& options, bool sends, std::vector<Point>* out);

 private:
  enum Way : uint32_t { kCopied, kMoved, kWays };
  using Stream = apps::TagStream<16>;

  [[nodiscard]] int signal(Way way, bool sends);
  [[nodiscard]] int round(const Options& options, Way way, uint32_t size_bytes, bool sends,
                          double* each_ns);
  [[nodiscard]] int point(const Options& options, bool sends, Point* out);

  std::vector<uint8_t> memory_;  // of all messages
  std::unique_ptr<msg::MessagePort> port_;
  std::array<apps::TagEnd, kWays> ends_;
  std::array<Stream, kWays> streams_{Stream(ends_[kCopied], memory_.data()),
                                     Stream(ends_[kMoved], memory_.data())};
};

}  // namespace rio::tune
