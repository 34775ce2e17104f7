/// @file
/// Asks a card by its destID how busy it is, through the DMA queue of an Endpoint.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>

#include "pmd/api/riopmd.hpp"
#include "tests/support/wait.hpp"

namespace rio::test {

/// One question at a time. @pre nothing else uses the DMA queue.
class RailAsk {
 public:
  explicit RailAsk(Endpoint& endpoint) : endpoint_(endpoint) {
    EXPECT_EQ(endpoint.alloc(sizeof(regs::RailStatus), 64, &memory_), 0);
  }
  /// @param work called again and again until the answer is there, for cards that work only while
  /// they are polled. @return as pmd::read_rail_answer(); -ETIME: the own card is silent.
  template <class Work>
  [[nodiscard]] int operator()(uint32_t dest_id, Work&& work, pmd::RailState* out) {
    const pmd::DmaRequest request = pmd::rail_request(dest_id, memory_.iova, 1);
    EXPECT_EQ(endpoint_.dma().post(&request, 1), 1);
    int rc = -ETIME;
    static_cast<void>(wait_until([&] {
      pmd::EntryDone done{};
      if (endpoint_.dma().reap(&done, 1) == 1) {
        regs::RailStatus bytes;
        std::memcpy(&bytes, memory_.va, sizeof bytes);
        rc = pmd::read_rail_answer(done, bytes, out);
        return true;
      }
      work();
      sched_yield();
      return false;
    }));
    return rc;
  }

 private:
  Endpoint& endpoint_;
  pmd::DmaMemory memory_;
};

}  // namespace rio::test
