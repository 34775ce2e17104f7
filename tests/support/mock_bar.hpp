/// @file
/// A strict BAR: expects exactly one sequence of reads and writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>

#include "pmd/bus/mmio.hpp"

namespace rio::test {

/// Every access must be the next expected one; any other fails the test, and so does an expectation
/// that is left over at the end.
class MockBar final : public pmd::MmioTap {
 public:
  static constexpr size_t kLenBytes = 2 << 20;

  ~MockBar() override { verify(); }

  MockBar& expect_read(uint32_t offset, uint32_t value) {
    expected_.push_back({Kind::kRead, offset, value});
    return *this;
  }
  /// Expects any number of reads of this word, even none, until another access.
  MockBar& expect_reads(uint32_t offset, uint32_t value) {
    expected_.push_back({Kind::kReads, offset, value});
    return *this;
  }
  MockBar& expect_write(uint32_t offset, uint32_t value) {
    expected_.push_back({Kind::kWrite, offset, value});
    return *this;
  }

  /// Fails for expected accesses that did not come, and forgets them.
  void verify() {
    drop_repeats();
    for (const Access& access : expected_) {
      ADD_FAILURE() << "missing " << text(access);
    }
    expected_.clear();
  }

  [[nodiscard]] uint64_t reads() const { return reads_; }
  [[nodiscard]] uint64_t writes() const { return writes_; }

  uint32_t on_read(uint32_t offset) override {
    ++reads_;
    if (!expected_.empty() && expected_.front().kind == Kind::kReads &&
        expected_.front().offset == offset) {
      return expected_.front().value;
    }
    drop_repeats();
    const Access got{Kind::kRead, offset, 0};
    if (expected_.empty() || expected_.front().kind != Kind::kRead ||
        expected_.front().offset != offset) {
      unexpected(got);
      return 0;
    }
    const uint32_t value = expected_.front().value;
    expected_.pop_front();
    return value;
  }

  void on_write(uint32_t offset, uint32_t value) override {
    ++writes_;
    drop_repeats();
    const Access got{Kind::kWrite, offset, value};
    if (expected_.empty() || expected_.front().kind != Kind::kWrite ||
        expected_.front().offset != offset || expected_.front().value != value) {
      unexpected(got);
      return;
    }
    expected_.pop_front();
  }

 private:
  enum class Kind { kRead, kReads, kWrite };
  struct Access {
    Kind kind;
    uint32_t offset;
    uint32_t value;
  };

  void drop_repeats() {
    while (!expected_.empty() && expected_.front().kind == Kind::kReads) {
      expected_.pop_front();
    }
  }
  void unexpected(const Access& got) const {
    ADD_FAILURE() << "unexpected " << text(got) << "; expected "
                  << (expected_.empty() ? "nothing" : text(expected_.front()));
  }
  static std::string text(const Access& access) {
    char line[80];
    std::snprintf(line, sizeof line, "%s 0x%x, 0x%x",
                  access.kind == Kind::kWrite ? "write" : "read", access.offset, access.value);
    return line;
  }

  std::deque<Access> expected_;
  uint64_t reads_ = 0;
  uint64_t writes_ = 0;
};

}  // namespace rio::test
