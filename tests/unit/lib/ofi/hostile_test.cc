// A peer that speaks lib/tag and sends malformed requests: its session ends, and others are served.
#include <rdma/fi_rma.h>

#include <cstring>

#include "lib/ofi/ask.hpp"
#include "lib/ofi/name.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using ofi::AskHeader;
using ofi::Verb;

struct Wrong {
  const char* what;
  AskHeader header;
  size_t bytes;  // of the whole request
};

constexpr AskHeader ask(Verb verb, uint64_t bytes) {
  return {verb, 0, 0, 0, 1, 0, 0, bytes, 0};
}
constexpr AskHeader with(AskHeader header, uint8_t flags, uint8_t type = 0, uint8_t op = 0) {
  header.flags = flags;
  header.type = type;
  header.op = op;
  return header;
}
constexpr size_t kHeader = sizeof(AskHeader);
constexpr Wrong kWrong[] = {
    {"nothing", {}, 0},
    {"half a header", ask(Verb::kRead, 8), kHeader / 2},
    {"verb 0", ask(Verb{0}, 0), kHeader},
    {"an unknown verb", ask(Verb{7}, 0), kHeader},
    {"a window request with a length", ask(Verb::kWindow, 8), kHeader},
    {"an unknown flag", with(ask(Verb::kWrite, 8), 0x80), kHeader + 8},
    {"less data than announced", ask(Verb::kWrite, 16), kHeader + 8},
    {"more data than announced", ask(Verb::kWrite, 8), kHeader + 16},
    {"data in a read", ask(Verb::kRead, 8), kHeader + 8},
    {"a write longer than any message", with(ask(Verb::kWrite, ~uint64_t{0}), AskHeader::kFollows),
     kHeader},
    {"an unknown type", with(ask(Verb::kUpdate, 8), 0, 200, FI_SUM), kHeader + 8},
    {"an unknown operation", with(ask(Verb::kUpdate, 8), 0, FI_UINT64, 200), kHeader + 8},
    {"half an operand", with(ask(Verb::kUpdate, 4), 0, FI_UINT64, FI_SUM), kHeader + 4},
    {"no operand to compare with", with(ask(Verb::kCompare, 8), 0, FI_UINT64, FI_CSWAP),
     kHeader + 8},
    {"more than one message", ask(Verb::kWrite, 8), ofi::kAskBytesMax + 1},
};

class OfiHostile : public OfiTest {
 protected:
  OfiHostile() : OfiTest("shm"), info_(get_info(hints(FI_RMA | FI_TAGGED))), owner_(info_, 0) {}

  void look(OfiNode& node) {
    fi_cq_tagged_entry none[1];
    EXPECT_LE(fi_cq_read(node.rx(), none, 0), 0);
  }
  [[nodiscard]] tag::Address remote_context() {
    ofi::Name name;
    std::memcpy(&name, owner_.name().data(), sizeof(name));
    return tag::address(name.dest_id, name.endpoint * ofi::kContextsOfEndpoint) +
           ofi::kRemoteContext;
  }
  /// Whether a write of another peer arrives.
  bool serves_others() {
    OfiNode other(info_, 0);
    const fi_addr_t to = other.insert(owner_);
    uint64_t memory = 0;
    fid_mr* region = nullptr;
    EXPECT_EQ(fi_mr_reg(owner_.domain(), &memory, 8, FI_REMOTE_WRITE, 0, 3, 0, &region, nullptr),
              0);
    const Held<fid_mr> held(region);
    const uint64_t value = 42;
    EXPECT_EQ(fi_write(other.ep(), &value, 8, nullptr, to, 0, fi_mr_key(region), nullptr), 0);
    fi_cq_tagged_entry entry{};
    ssize_t rc = 0;
    const auto is_done = [&] {
      look(owner_);
      rc = fi_cq_read(other.tx(), &entry, 1);
      return rc != -FI_EAGAIN;
    };
    return wait_until(is_done) && rc == 1 && memory == value;
  }

  Info info_;
  OfiNode owner_;
};

TEST_F(OfiHostile, AMalformedRequestEndsItsSessionOnly) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.what);
    TagNode hostile(std::getenv("FI_RIO_CARD"), 0);
    std::vector<uint8_t> bytes(wrong.bytes);
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), &wrong.header, std::min(bytes.size(), kHeader));
    }
    tag::SendRequest request;
    ASSERT_GE(hostile->send(remote_context(), ofi::kAskBits, bytes.data(), bytes.size(), request),
              0);
    EXPECT_TRUE(wait_until([&] {
      hostile.progress();
      look(owner_);
      return hostile.port->sessions_ended() != 0;
    }));
    EXPECT_EQ(hostile.port->sessions_ended(), 1u);
  }
  EXPECT_TRUE(serves_others());
}

}  // namespace
}  // namespace rio::test
