/// @file
/// An endpoint of the provider, used as programs do: through libfabric, which loads librio-fi.so.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace rio::test {

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

struct Closer {
  template <class Object>
  void operator()(Object* object) const {
    EXPECT_EQ(fi_close(&object->fid), 0);
  }
};
template <class Object>
using Held = std::unique_ptr<Object, Closer>;

/// Hints that select this provider.
[[nodiscard]] inline Info hints(uint64_t caps = FI_TAGGED | FI_MSG) {
  Info info(fi_allocinfo());
  info->caps = caps;
  info->fabric_attr->prov_name = strdup("rio");
  return info;
}

/// Calls fi_getinfo(). @param node,service,flags as for fi_getinfo(). @return null: no match.
[[nodiscard]] inline Info get_info(const Info& hints, const char* node = nullptr,
                                   const char* service = nullptr, uint64_t flags = 0) {
  fi_info* info = nullptr;
  const int rc = fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints.get(), &info);
  EXPECT_TRUE(rc == 0 || rc == -FI_ENODATA) << fi_strerror(-rc);
  return Info(rc == 0 ? info : nullptr);
}

struct NodeConfig {
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  fi_av_type av_type = FI_AV_TABLE;
  uint64_t tx_bind = FI_TRANSMIT;
  uint64_t rx_bind = FI_RECV;
  fi_wait_obj wait = FI_WAIT_NONE;
};

/// A card of its own on the wire that FI_RIO_CARD names, with one endpoint.
class OfiNode {
 public:
  using Name = std::array<uint8_t, 64>;

  /// @param dest_id of the card: different for cards of one wire; 0 on a fabric, which assigns
  /// them.
  explicit OfiNode(const Info& info, uint32_t dest_id, const NodeConfig& config = {}) {
    setenv("FI_RIO_DESTID", std::to_string(dest_id).c_str(), 1);
    open(info, config);
    unsetenv("FI_RIO_DESTID");
    if (ep_ == nullptr) {
      throw std::runtime_error("no endpoint of the provider; is FI_PROVIDER_PATH set?");
    }
  }

  fid_ep* ep() { return ep_.get(); }
  fid_cq* tx() { return tx_.get(); }
  fid_cq* rx() { return rx_.get(); }
  fid_av* av() { return av_.get(); }
  fid_domain* domain() { return domain_.get(); }
  fid_fabric* fabric() { return fabric_.get(); }

  [[nodiscard]] Name name() {
    Name out{};
    size_t bytes = out.size();
    EXPECT_EQ(fi_getname(&ep_->fid, out.data(), &bytes), 0);
    return out;
  }
  [[nodiscard]] fi_addr_t insert(OfiNode& peer) {
    const Name name = peer.name();
    fi_addr_t out = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av_.get(), name.data(), 1, &out, 0, nullptr), 1);
    return out;
  }
  void close_endpoint() { ep_.reset(); }
  /// Closes everything.
  void close() {
    ep_.reset();
    rx_.reset();
    tx_.reset();
    av_.reset();
    domain_.reset();
  }
  /// Makes progress, and expects no completion.
  void expect_silent() {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_read(tx_.get(), &entry, 1), -FI_EAGAIN);
    EXPECT_EQ(fi_cq_read(rx_.get(), &entry, 1), -FI_EAGAIN);
  }

 private:
  void open(const Info& info, const NodeConfig& config) {
    ASSERT_NE(info, nullptr);
    fid_fabric* fabric = nullptr;
    ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
    domain_.reset(domain);
    fi_av_attr av_attr{};
    av_attr.type = config.av_type;
    fid_av* av = nullptr;
    ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
    av_.reset(av);
    fi_cq_attr cq_attr{};
    cq_attr.format = config.format;
    cq_attr.wait_obj = config.wait;
    fid_cq* cq = nullptr;
    ASSERT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
    tx_.reset(cq);
    ASSERT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
    rx_.reset(cq);
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
    ep_.reset(ep);
    ASSERT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &tx_->fid, config.tx_bind), 0);
    ASSERT_EQ(fi_ep_bind(ep, &rx_->fid, config.rx_bind), 0);
    ASSERT_EQ(fi_enable(ep), 0);
  }

  Held<fid_fabric> fabric_;
  Held<fid_domain> domain_;
  Held<fid_av> av_;
  Held<fid_cq> tx_;
  Held<fid_cq> rx_;
  Held<fid_ep> ep_;
};

/// A test with a wire of its own for its cards.
class OfiTest : public testing::Test {
 protected:
  /// @param kind "emu"; or a fabric, which reports members that have gone: "shm", "udp". @param
  /// options of the cards, as ",pull=0".
  explicit OfiTest(const std::string& kind = "emu", const std::string& options = "") {
    setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1);
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::string card = kind + ":ofi" + test->name();
    for (char& c : card) {
      c = c == '/' ? '_' : c;
    }
    card += (kind == "udp" ? ",bind=127.0.0.1" : "") + options;
    setenv("FI_RIO_CARD", card.c_str(), 1);
  }
  ~OfiTest() override { unsetenv("RIO_RUNTIME_DIR"); }

  TempDir dir_;
};

/// Two endpoints that know each other.
class OfiPair : public OfiTest {
 protected:
  static constexpr uint64_t kTurns = 20'000'000;  // the longest wait

  explicit OfiPair(uint64_t caps = FI_TAGGED | FI_MSG | FI_SOURCE | FI_DIRECTED_RECV,
                   const NodeConfig& config = {}, const std::string& kind = "emu")
      : OfiTest(kind),
        info_(get_info(hints(caps))),
        a_(info_, kind == "emu" ? 1 : 0, config),
        b_(info_, kind == "emu" ? 2 : 0, config) {
    to_b_ = a_.insert(b_);
    to_a_ = b_.insert(a_);
  }

  /// One thread serves both: each processes the other's last message before it waits for that.
  void TearDown() override {
    work();
    b_.close_endpoint();
    work();
    a_.close_endpoint();
    work();
  }
  void work() {
    constexpr uint32_t kAnswers = 100;
    for (uint32_t turn = 0; turn < kAnswers && b_.rx() != nullptr; ++turn) {
      fi_cq_tagged_entry none[1];
      EXPECT_TRUE(fi_cq_read(a_.rx(), none, 0) <= 0 && fi_cq_read(b_.rx(), none, 0) <= 0);
    }
  }
  /// Repeats fi_*inject*(), which accepts nothing for a new peer, while both make progress.
  template <class Call>
  ssize_t injected(Call&& call) {
    ssize_t rc = call();
    for (uint64_t turn = 0; turn < kTurns && rc == -FI_EAGAIN; ++turn) {
      fi_cq_tagged_entry none[1];
      EXPECT_TRUE(fi_cq_read(a_.rx(), none, 0) <= 0 && fi_cq_read(b_.rx(), none, 0) <= 0);
      rc = call();
    }
    return rc;
  }
  /// Gets the next completion of `queue`, while both make progress. @return 1, or -FI_EAVAIL; 0:
  /// none.
  template <class Entry>
  ssize_t next(fid_cq* queue, Entry* entry, fi_addr_t* source = nullptr) {
    fid_cq* const other = queue == a_.tx() || queue == a_.rx() ? b_.rx() : a_.rx();
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      const ssize_t rc = fi_cq_readfrom(queue, entry, 1, source);
      if (rc != -FI_EAGAIN) {
        return rc;
      }
      fi_cq_tagged_entry none[1];
      EXPECT_TRUE(fi_cq_read(other, none, 0) <= 0);
    }
    return 0;
  }
  /// The next error of `queue`.
  fi_cq_err_entry next_error(fid_cq* queue) {
    fi_cq_tagged_entry entry{};
    fi_cq_err_entry error{};
    EXPECT_EQ(next(queue, &entry), -FI_EAVAIL);
    EXPECT_EQ(fi_cq_readerr(queue, &error, 0), 1);
    return error;
  }
  void expect_sent(void* context, uint64_t kind = FI_TAGGED) {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(next(a_.tx(), &entry), 1);
    EXPECT_EQ(entry.op_context, context);
    EXPECT_EQ(entry.flags, FI_SEND | kind);
  }

  Info info_;
  OfiNode a_;
  OfiNode b_;
  fi_addr_t to_b_ = FI_ADDR_NOTAVAIL;
  fi_addr_t to_a_ = FI_ADDR_NOTAVAIL;
};

}  // namespace rio::test
