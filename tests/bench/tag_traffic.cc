#include "tests/bench/tag_traffic.hpp"

#include <cstdio>
#include <cstdlib>

using rio::tag::Matcher;
using rio::tag::Message;
using rio::tag::Receive;

/// The code that callgrind counts: one call of the engine each. Not inlined, and with names that
/// are easy to type.
extern "C" {
[[gnu::noinline]] Message* rio_bench_tag_post(Matcher* matcher, Receive* receive) {
  return matcher->post(*receive);
}
[[gnu::noinline]] Receive* rio_bench_tag_arrive(Matcher* matcher, uint32_t source, uint64_t bits) {
  return matcher->arrive(source, bits);
}
[[gnu::noinline]] void rio_bench_tag_keep(Matcher* matcher, Message* message) {
  matcher->keep(*message);
}
[[gnu::noinline]] int rio_bench_tag_cancel(Matcher* matcher, Receive* receive) {
  return matcher->cancel(*receive);
}
}

namespace rio::bench {
namespace {

constexpr tag::HashSeed kSeed{.for_bits = 0x9E3779B97F4A7C15,
                              .for_source = 0xD1B54A32D192ED03,
                              .for_both = 0xC2B2AE3D27D4EB4F};
constexpr uint32_t kPeers = 4;

void expect(bool good, const char* what) {
  if (!good) [[unlikely]] {
    std::fprintf(stderr, "error: %s did not do what it should\n", what);
    std::exit(1);
  }
}

}  // namespace

TagTraffic::TagTraffic(const TagCase& kind, uint64_t count)
    : kind_(kind), receives_(count), messages_(kind.unexpected ? count : 0) {
  expect(matcher_.create(kSeed, {.receives = count, .messages = count}) == 0, "create");
  for (uint64_t i = 0; i < count; ++i) {
    put(i, i);
  }
}

void TagTraffic::step() {
  get(slot_, oldest_);
  put(slot_, oldest_ + receives_.size());
  ++oldest_;
  slot_ = slot_ + 1 == receives_.size() ? 0 : slot_ + 1;
}

uint64_t TagTraffic::bits(uint64_t number) const {
  return kind_.one_key ? 7 : number;
}

uint32_t TagTraffic::source(uint64_t number) const {
  return kind_.one_key ? 0 : static_cast<uint32_t>(number % kPeers);
}

void TagTraffic::fill(Receive& receive, uint64_t number) const {
  receive.bits = bits(number);
  receive.ignore = kind_.ignore;
  receive.source = kind_.any_source ? tag::kAnySource : source(number);
}

void TagTraffic::put(uint64_t slot, uint64_t number) {
  if (kind_.unexpected) {
    Message& message = messages_[slot];
    message.bits = bits(number);
    message.source = source(number);
    expect(rio_bench_tag_arrive(&matcher_, message.source, message.bits) == nullptr, "arrive");
    rio_bench_tag_keep(&matcher_, &message);
    return;
  }
  fill(receives_[slot], number);
  expect(rio_bench_tag_post(&matcher_, &receives_[slot]) == nullptr, "post");
}

void TagTraffic::get(uint64_t slot, uint64_t number) {
  if (kind_.unexpected) {
    fill(receives_[slot], number);
    expect(rio_bench_tag_post(&matcher_, &receives_[slot]) == &messages_[slot], "post");
  } else if (kind_.cancel) {
    expect(rio_bench_tag_cancel(&matcher_, &receives_[slot]) == 0, "cancel");
  } else {
    expect(rio_bench_tag_arrive(&matcher_, source(number), bits(number)) == &receives_[slot],
           "arrive");
  }
}

}  // namespace rio::bench
