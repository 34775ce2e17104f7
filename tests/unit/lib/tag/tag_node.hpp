/// @file
/// Endpoints of this process, each on a card of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/tag/tagged_context.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/pattern.hpp"

namespace rio::test {

struct TagNode {
  TagNode(const std::string& card, uint32_t dest_id, uint16_t contexts = 1, uint32_t share = 16,
          uint64_t eager_bytes = tag::TaggedConfig{}.eager_bytes, uint32_t buffers = 1024,
          uint32_t deliver_ms = msg::PortConfig{}.deliver_ms) {
    msg::PortConfig config;
    config.card = card;
    config.dest_id = dest_id;
    config.buffers = buffers;
    config.share = share;
    config.connect_ms = 120'000;  // longer than any wait of a test
    config.deliver_ms = deliver_ms;
    EXPECT_EQ(msg::MessagePort::open(config, &port), 0);
    endpoints.resize(contexts);
    for (uint16_t i = 0; i < contexts; ++i) {
      const tag::TaggedConfig each{.eager_bytes = eager_bytes};
      EXPECT_EQ(tag::TaggedContext::create(*port, i, each, &endpoints[i]), 0);
    }
  }

  [[nodiscard]] tag::TaggedContext& operator*() { return *endpoints[0]; }
  [[nodiscard]] tag::TaggedContext* operator->() { return endpoints[0].get(); }
  [[nodiscard]] tag::Address at(uint32_t context = 0) {
    return tag::address(port->dest_id(), context);
  }
  void progress() {
    for (auto& endpoint : endpoints) {
      endpoint->progress();
    }
  }

  std::unique_ptr<msg::MessagePort> port;
  std::vector<std::unique_ptr<tag::TaggedContext>> endpoints;
};

/// Two cards on one wire.
class TagPair : public testing::Test {
 protected:
  /// Both sides work until `good()`. @return whether it became true in time.
  template <class Good>
  bool until(Good&& good) {
    return wait_until([&] {
      if (good()) {
        return true;
      }
      a_.progress();
      b_.progress();
      return false;
    });
  }
  /// Both sides work for a while, in which no message should come.
  void work(uint32_t turns = 200) {
    for (uint32_t turn = 0; turn < turns; ++turn) {
      a_.progress();
      b_.progress();
    }
  }
  /// Waits for a request. @return its status once it is done; 1: not in time.
  int wait(tag::TaggedContext& of, tag::Request& request) {
    return until([&] { return of.test(request); }) ? request.status : 1;
  }
  /// Expects that a send from a to b succeeds. @param begun result of send().
  void sent(int begun, tag::SendRequest& request) {
    ASSERT_GE(begun, 0);
    if (begun == 0) {
      ASSERT_EQ(wait(*a_, request), 0);
    }
  }
  /// Sends from a to b, and waits until the send is done.
  void send(uint64_t bits, const std::vector<uint8_t>& bytes) {
    tag::SendRequest request;
    sent(a_->send(b_.at(), bits, bytes.data(), bytes.size(), request), request);
  }

  const std::string wire_ =
      std::string("emu:") + testing::UnitTest::GetInstance()->current_test_info()->name();
  TagNode a_{wire_, 5, 3};
  TagNode b_{wire_, 6, 3};
};

}  // namespace rio::test
