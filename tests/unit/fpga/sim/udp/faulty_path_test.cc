// Two ends over a path that loses, doubles, reorders, delays and spoils datagrams, by seed and in
// virtual time. All must arrive, once, in order, in both directions.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "fpga/sim/udp/congestion.hpp"
#include "fpga/sim/udp/datagram.hpp"
#include "fpga/sim/udp/receiver.hpp"
#include "fpga/sim/udp/sender.hpp"

namespace rio::sim::udp {
namespace {

constexpr uint32_t kFirst = 0xffffff00;  // wraps on the way
constexpr uint32_t kUnits = 2000;
constexpr uint64_t kStepNs = 10'000;

struct Rates {
  uint32_t lost, doubled, late, cut;  // of 1000
};

/// Datagrams under way, by the time at which they arrive.
class FaultyPath {
 public:
  FaultyPath(uint32_t seed, Rates rates) : random_(seed), rates_(rates) {}

  void send(std::vector<uint8_t> bytes, uint64_t now_ns) {
    if (draw(rates_.lost)) {
      return;
    }
    if (draw(rates_.cut)) {
      bytes.resize(random_() % bytes.size());
    }
    for (int copies = draw(rates_.doubled) ? 2 : 1; copies > 0; --copies) {
      const uint64_t late = draw(rates_.late) ? random_() % 5'000'000 : 0;
      flying_.emplace(now_ns + 50'000 + late, bytes);
    }
  }
  bool receive(uint64_t now_ns, std::vector<uint8_t>* out) {
    if (flying_.empty() || flying_.begin()->first > now_ns) {
      return false;
    }
    *out = std::move(flying_.begin()->second);
    flying_.erase(flying_.begin());
    return true;
  }

 private:
  bool draw(uint32_t rate) { return random_() % 1000 < rate; }

  std::mt19937 random_;
  Rates rates_;
  std::multimap<uint64_t, std::vector<uint8_t>> flying_;
};

class End {
 public:
  void step(FaultyPath& out, FaultyPath& in, uint64_t now_ns) {
    std::vector<uint8_t> bytes;
    bool answer = false;
    while (in.receive(now_ns, &bytes)) {
      answer |= take(bytes, now_ns);
    }
    while (pushed_ < kUnits && push()) {
    }
    sender_.look(now_ns);
    Outgoing unit = sender_.send(now_ns);
    for (; !unit.bytes.empty(); unit = sender_.send(now_ns)) {
      tell(out, unit, now_ns);
      answer = false;
    }
    if (answer) {
      tell(out, unit, now_ns);
    }
  }
  [[nodiscard]] bool done() const { return given_ == kUnits && sender_.kept() == 0; }
  [[nodiscard]] uint32_t given() const { return given_; }
  [[nodiscard]] uint64_t under_way() const { return congestion_.under_way_bytes(); }

 private:
  bool push() {
    std::vector<uint8_t> bytes(sizeof(pushed_) + pushed_ % 97);
    std::memcpy(bytes.data(), &pushed_, sizeof(pushed_));
    if (!sender_.push(bytes)) {
      return false;
    }
    ++pushed_;
    return true;
  }
  bool take(const std::vector<uint8_t>& bytes, uint64_t now_ns) {
    Datagram got;
    if (decode(bytes, &got) != 0) {
      return false;
    }
    EXPECT_EQ(sender_.heard(got.heard[0], now_ns), 0);
    if (got.payload.empty()) {
      return false;
    }
    static_cast<void>(receiver_.put(got.unit, got.payload));
    for (auto unit = receiver_.front(); !unit.empty(); unit = receiver_.front()) {
      uint32_t number = 0;
      std::memcpy(&number, unit.data(), sizeof(number));
      EXPECT_EQ(number, given_);
      EXPECT_EQ(unit.size(), sizeof(number) + number % 97);
      ++given_;
      receiver_.pop();
    }
    return true;
  }
  void tell(FaultyPath& out, const Outgoing& unit, uint64_t now_ns) {
    Datagram datagram;
    datagram.number = ++number_;
    datagram.heard[0] = receiver_.heard();
    datagram.unit = unit.unit;
    datagram.payload = unit.bytes;
    std::vector<uint8_t> bytes(kHeaderBytes + unit.bytes.size());
    ASSERT_EQ(encode(datagram, bytes), bytes.size());
    out.send(std::move(bytes), now_ns);
  }

  Congestion congestion_{101};
  Sender sender_{64, kFirst, &congestion_};
  Receiver receiver_{64, kFirst};
  uint32_t pushed_ = 0;
  uint32_t given_ = 0;
  uint64_t number_ = 0;
};

void run(uint32_t seed, Rates rates) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  FaultyPath there(seed, rates);
  FaultyPath back(seed + 1'000'000, rates);
  End a;
  End b;
  uint64_t now_ns = kStepNs;
  // 600 s of virtual time: a path that stands still is told from one that is slow.
  for (; now_ns < 600'000'000'000 && !(a.done() && b.done()); now_ns += kStepNs) {
    a.step(there, back, now_ns);
    b.step(back, there, now_ns);
  }
  EXPECT_TRUE(a.done()) << a.given();
  EXPECT_TRUE(b.done()) << b.given();
  EXPECT_EQ(a.under_way(), 0u);
  EXPECT_EQ(b.under_way(), 0u);
}

TEST(UdpFaultyPath, AllArrivesOnAGoodPath) {
  run(1, {0, 0, 0, 0});
}

TEST(UdpFaultyPath, AllArrivesDespiteEachFault) {
  run(2, {100, 0, 0, 0});
  run(3, {0, 200, 0, 0});
  run(4, {0, 0, 300, 0});
  run(5, {0, 0, 0, 100});
}

TEST(UdpFaultyPath, AllArrivesDespiteAllOfThem) {
  for (uint32_t seed = 10; seed < 15; ++seed) {
    run(seed, {50, 50, 100, 20});
  }
}

}  // namespace
}  // namespace rio::sim::udp
