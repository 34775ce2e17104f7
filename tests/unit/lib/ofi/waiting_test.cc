// Threads that sleep until something completes, and progress while the user makes no calls.
#include <poll.h>
#include <rdma/fi_rma.h>

#include <thread>

#include "tests/support/sanitizer.hpp"
#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

constexpr int kPatienceMs = 60000;

class OfiWaiting : public OfiTest {
 protected:
  OfiWaiting() : OfiTest("shm") {}

  static NodeConfig by_descriptor() {
    NodeConfig config;
    config.wait = FI_WAIT_FD;
    return config;
  }
  static int descriptor_of(fid_cq* queue) {
    int fd = -1;
    EXPECT_EQ(fi_control(&queue->fid, FI_GETWAIT, &fd), 0);
    return fd;
  }
  /// Waits as programs do: never sleeps while there is a completion. @return 1, or the error.
  static ssize_t sleep_and_read(OfiNode& node, fid_cq* queue, fi_cq_tagged_entry* out) {
    fid* const all[] = {&queue->fid};
    for (int sleeps = 0; sleeps < kPatienceMs; ++sleeps) {
      if (const ssize_t rc = fi_cq_read(queue, out, 1); rc != -FI_EAGAIN) {
        return rc;
      }
      const int armed = fi_trywait(node.fabric(), const_cast<fid**>(all), 1);
      pollfd fd = {descriptor_of(queue), POLLIN, 0};
      if (armed == 0 && poll(&fd, 1, kPatienceMs) != 1) {
        return -FI_ETIMEDOUT;
      }
      if (armed != 0 && armed != -FI_EAGAIN) {
        return armed;
      }
    }
    return -FI_EAGAIN;
  }
};

TEST_F(OfiWaiting, ADescriptorReportsArrivals) {
  const Info info = get_info(hints());
  OfiNode a(info, 0, by_descriptor());
  OfiNode b(info, 0, by_descriptor());
  const fi_addr_t to_b = a.insert(b);
  constexpr uint64_t kMessages = 50;
  std::thread sender([&] {
    for (uint64_t i = 0; i < kMessages; ++i) {
      fi_cq_tagged_entry entry{};
      ASSERT_EQ(fi_tsend(a.ep(), &i, sizeof(i), nullptr, to_b, i, nullptr), 0);
      ASSERT_EQ(sleep_and_read(a, a.tx(), &entry), 1);
    }
  });
  for (uint64_t i = 0; i < kMessages; ++i) {
    uint64_t got = 0;
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_trecv(b.ep(), &got, sizeof(got), nullptr, FI_ADDR_UNSPEC, i, 0, &got), 0);
    ASSERT_EQ(sleep_and_read(b, b.rx(), &entry), 1);
    EXPECT_EQ(got, i);
  }
  sender.join();
}

TEST_F(OfiWaiting, AWaitLastsUntilTheThreshold) {
  OfiNode own(get_info(hints()), 0);
  fi_cq_attr attr{};
  attr.format = FI_CQ_FORMAT_TAGGED;
  attr.wait_obj = FI_WAIT_UNSPEC;
  attr.wait_cond = FI_CQ_COND_THRESHOLD;
  fid_cq* cq = nullptr;
  ASSERT_EQ(fi_cq_open(own.domain(), &attr, &cq, nullptr), 0);
  const Held<fid_cq> queue(cq);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(own.domain(), get_info(hints()).get(), &ep, nullptr), 0);
  const Held<fid_ep> held(ep);
  ASSERT_EQ(fi_ep_bind(ep, &own.av()->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep), 0);
  OfiNode::Name name{};
  size_t bytes = name.size();
  ASSERT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
  fi_addr_t self = 0;
  ASSERT_EQ(fi_av_insert(own.av(), name.data(), 1, &self, 0, nullptr), 1);
  uint64_t words[3] = {};
  for (uint64_t& word : words) {
    ASSERT_EQ(fi_trecv(ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  }
  ASSERT_EQ(fi_tinject(ep, words, sizeof(words[0]), self, 1), 0);
  std::thread sender([&] {
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(fi_tinject(ep, words, sizeof(words[0]), self, 1), 0);
    }
  });
  fi_cq_tagged_entry entries[8];
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number, as fi_cq_sread() wants it
  const void* const three = reinterpret_cast<void*>(uintptr_t{3});
  EXPECT_EQ(fi_cq_sread(cq, entries, 8, three, kPatienceMs), 3);
  sender.join();
}

// Tells programs with many queues and counters which of them have news.
TEST_F(OfiWaiting, APollSetFindsObjectsWithNews) {
  const Info info = get_info(hints());
  OfiNode own(info, 0);
  const fi_addr_t to_self = own.insert(own);
  fi_cntr_attr attr{};
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(own.domain(), &attr, &counter, &attr), 0);
  const Held<fid_cntr> held(counter);
  fi_poll_attr poll_attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(own.domain(), &poll_attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &own.rx()->fid, 0), 0);
  ASSERT_EQ(fi_poll_add(set, &counter->fid, 0), 0);
  EXPECT_EQ(fi_poll_add(set, &counter->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_poll_add(set, &own.ep()->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  own.rx()->fid.context = &own;
  void* found[2] = {};
  EXPECT_EQ(fi_poll(set, found, 2), 0);
  ASSERT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(fi_poll(set, found, 2), 1);
  EXPECT_EQ(found[0], &attr);
  EXPECT_EQ(fi_poll(set, found, 2), 0);  // nothing has changed
  uint64_t got = 0;
  ASSERT_EQ(fi_trecv(own.ep(), &got, sizeof(got), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_tinject(own.ep(), "x", 1, to_self, 1), 0);
  ASSERT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(fi_poll(set, found, 1), 1);  // there is room for one
  EXPECT_EQ(found[0], &own);
  EXPECT_EQ(fi_poll(set, found, 2), 2);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_read(own.rx(), &entry, 1), 1);
  EXPECT_EQ(fi_poll(set, found, 2), 0);
  ASSERT_EQ(fi_poll_del(set, &own.rx()->fid, 0), 0);
  EXPECT_EQ(fi_poll_del(set, &own.rx()->fid, 0), -FI_EINVAL);
  ASSERT_EQ(fi_poll_del(set, &counter->fid, 0), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(OfiWaiting, AWaitDoesNotSleepWhileThereIsACompletion) {
  const Info info = get_info(hints());
  OfiNode own(info, 0, by_descriptor());
  const fi_addr_t to_self = own.insert(own);
  uint64_t got = 0;
  ASSERT_EQ(fi_trecv(own.ep(), &got, sizeof(got), nullptr, FI_ADDR_UNSPEC, 1, 0, &got), 0);
  ASSERT_EQ(fi_tinject(own.ep(), "x", 1, to_self, 1), 0);
  fid* all[] = {&own.tx()->fid, &own.rx()->fid};
  EXPECT_EQ(fi_trywait(own.fabric(), all, 2), -FI_EAGAIN);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_read(own.rx(), &entry, 1), 1);
}

// No card is involved, so no interrupt reports it.
TEST_F(OfiWaiting, ADescriptorReportsTheWorkOfAnotherThread) {
  const Info info = get_info(hints());
  OfiNode own(info, 0, by_descriptor());
  const fi_addr_t to_self = own.insert(own);
  uint64_t got = 0;
  ASSERT_EQ(fi_trecv(own.ep(), &got, sizeof(got), nullptr, FI_ADDR_UNSPEC, 1, 0, &got), 0);
  fid* all[] = {&own.rx()->fid};
  ASSERT_EQ(fi_trywait(own.fabric(), all, 1), 0);
  ASSERT_EQ(fi_tinject(own.ep(), "x", 1, to_self, 1), 0);
  pollfd fd = {descriptor_of(own.rx()), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 0), 1);
}

TEST_F(OfiWaiting, ASignalEndsAWait) {
  const Info info = get_info(hints());
  OfiNode own(info, 0);
  std::thread reader([&] {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(own.rx(), &entry, 1, nullptr, -1), -FI_EAGAIN);
  });
  EXPECT_EQ(fi_cq_signal(own.rx()), 0);
  reader.join();
}

// The thread ends, and others can still wait on the queue.
TEST_F(OfiWaiting, AWaitingThreadCanBeCancelled) {
  if (kHasAddressSanitizer) {
    GTEST_SKIP() << "AddressSanitizer does not follow the unwinding of a cancelled thread";
  }
  const Info info = get_info(hints());
  for (const fi_wait_obj wait : {FI_WAIT_FD, FI_WAIT_UNSPEC}) {
    NodeConfig config;
    config.wait = wait;
    OfiNode a(info, 0, config);
    fid_cntr* made = nullptr;
    ASSERT_EQ(fi_cntr_open(a.domain(), nullptr, &made, nullptr), 0);
    const Held<fid_cntr> counter(made);
    struct Waiter {
      fid_cq* queue;
      fid_cntr* counter;
    } waiters[] = {{a.rx(), nullptr}, {nullptr, made}};
    for (Waiter& waiter : waiters) {
      pthread_t thread{};
      const auto body = [](void* what) -> void* {
        const auto& it = *static_cast<Waiter*>(what);
        fi_cq_tagged_entry entry{};
        static_cast<void>(it.queue != nullptr ? fi_cq_sread(it.queue, &entry, 1, nullptr, -1)
                                              : fi_cntr_wait(it.counter, 1, -1));
        return nullptr;
      };
      ASSERT_EQ(pthread_create(&thread, nullptr, body, &waiter), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ASSERT_EQ(pthread_cancel(thread), 0);
      void* result = nullptr;
      ASSERT_EQ(pthread_join(thread, &result), 0);
      EXPECT_EQ(result, PTHREAD_CANCELED);
    }
    const fi_addr_t to = a.insert(a);
    char byte = 0;
    ASSERT_EQ(fi_recv(a.ep(), &byte, 1, nullptr, to, nullptr), 0);
    ASSERT_EQ(fi_inject(a.ep(), "x", 1, to), 0);
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(a.rx(), &entry, 1, nullptr, kPatienceMs), 1);
    EXPECT_EQ(byte, 'x');
  }
}

TEST_F(OfiWaiting, ThreadsWakeEachOther) {
  const Info info = get_info(hints());
  OfiNode own(info, 0);
  const fi_addr_t to_self = own.insert(own);
  uint64_t got = 0;
  ASSERT_EQ(fi_trecv(own.ep(), &got, sizeof(got), nullptr, FI_ADDR_UNSPEC, 1, 0, &got), 0);
  std::thread reader([&] {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(own.rx(), &entry, 1, nullptr, kPatienceMs), 1);
  });
  EXPECT_EQ(fi_tinject(own.ep(), "x", 1, to_self, 1), 0);
  reader.join();
}

TEST_F(OfiWaiting, UnsupportedKindsAreRefused) {
  const Info info = get_info(hints());
  OfiNode own(info, 0);
  int fd = -1;
  EXPECT_EQ(fi_control(&own.rx()->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
  fid* all[] = {&own.rx()->fid};
  EXPECT_EQ(fi_trywait(own.fabric(), all, 1), -FI_EINVAL);
  fi_cq_attr attr{};
  attr.wait_obj = FI_WAIT_MUTEX_COND;
  fid_cq* queue = nullptr;
  EXPECT_EQ(fi_cq_open(own.domain(), &attr, &queue, nullptr), -FI_ENOSYS);
}

class OfiAlone : public OfiWaiting {
 protected:
  /// Writes to memory whose owner makes no calls. @param progress of the owner. @return the result
  /// of the writer's wait.
  ssize_t write_to_one_that_is_elsewhere(fi_progress progress, int timeout_ms) {
    const Info asked = hints(FI_RMA | FI_TAGGED);
    asked->domain_attr->data_progress = progress;
    const Info owner_info = get_info(asked);
    EXPECT_EQ(owner_info->domain_attr->data_progress, progress);
    OfiNode owner(owner_info, 0);
    OfiNode writer(get_info(hints(FI_RMA | FI_TAGGED)), 0);
    const fi_addr_t to = writer.insert(owner);
    uint64_t memory = 0;
    fid_mr* region = nullptr;
    EXPECT_EQ(fi_mr_reg(owner.domain(), &memory, sizeof(memory), FI_REMOTE_WRITE, 0, 7, 0, &region,
                        nullptr),
              0);
    const Held<fid_mr> held(region);
    const uint64_t value = 0x1122334455667788;
    EXPECT_EQ(
        fi_write(writer.ep(), &value, sizeof(value), nullptr, to, 0, fi_mr_key(region), nullptr),
        0);
    fi_cq_tagged_entry entry{};
    const ssize_t rc = fi_cq_sread(writer.tx(), &entry, 1, nullptr, timeout_ms);
    if (rc == 1) {
      EXPECT_EQ(memory, value);
    }
    owner.close_endpoint();  // ends the writer's question if it was not answered
    return rc;
  }
};

TEST_F(OfiAlone, AWriteIsServedWhileTheOwnerMakesNoCalls) {
  EXPECT_EQ(write_to_one_that_is_elsewhere(FI_PROGRESS_AUTO, kPatienceMs), 1);
}

// Shows that the test above would notice an owner that does not serve the write.
TEST_F(OfiAlone, AWriteWaitsForAnOwnerWithManualProgress) {
  EXPECT_EQ(write_to_one_that_is_elsewhere(FI_PROGRESS_MANUAL, 20), -FI_EAGAIN);
}

}  // namespace
}  // namespace rio::test
