// Node and service: programs that exchange no names find each other.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

constexpr auto kHere = "127.0.0.1";
constexpr auto kService = "9228";  // free, since the folder is the test's own
constexpr auto kOtherService = "9229";
constexpr size_t kNameBytes = std::tuple_size_v<OfiNode::Name>;

[[nodiscard]] Info ask(const char* node, const char* service, uint64_t flags,
                       const Info& wanted = hints()) {
  return get_info(wanted, node, service, flags);
}

class OfiResolve : public OfiTest {
 protected:
  /// Inserts an address. @return as fi_av_insert().
  static int insert(OfiNode& node, const void* address, fi_addr_t* out) {
    return fi_av_insert(node.av(), address, 1, out, 0, nullptr);
  }
  [[nodiscard]] size_t files_of_services() const {
    size_t count = 0;
    for (const auto& each : std::filesystem::recursive_directory_iterator(dir_.at(""))) {
      count += each.path().filename().string().starts_with(".ofi-") ? 1 : 0;
    }
    return count;
  }
  /// Expects that no other endpoint of a domain can have that source address.
  static void expect_taken(OfiNode& node, const Info& serving) {
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_endpoint(node.domain(), serving.get(), &ep, nullptr), 0);
    const Held<fid_ep> held(ep);
    ASSERT_EQ(fi_ep_bind(ep, &node.av()->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &node.tx()->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep), -FI_EADDRINUSE);
  }
  /// Ends two nodes. One thread serves both, so each processes the other's last message before it
  /// waits for that.
  static void part(OfiNode& a, OfiNode& b) {
    work(a, b);
    a.close_endpoint();
    work(b, b);
    b.close_endpoint();
  }
  static void work(OfiNode& a, OfiNode& b) {
    constexpr uint32_t kAnswers = 100;
    for (uint32_t turn = 0; turn < kAnswers; ++turn) {
      fi_cq_tagged_entry none[1];
      EXPECT_TRUE(fi_cq_read(a.rx(), none, 0) <= 0 && fi_cq_read(b.rx(), none, 0) <= 0);
    }
  }
  static void expect_arrives(OfiNode& from, fi_addr_t to, OfiNode& at) {
    char text[8] = {};
    ASSERT_EQ(fi_trecv(at.ep(), text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_tsend(from.ep(), "hello", 6, nullptr, to, 1, nullptr), 0);
    ssize_t rc = -FI_EAGAIN;
    for (uint64_t turn = 0; rc == -FI_EAGAIN && turn < kTurns; ++turn) {
      fi_cq_tagged_entry entry{};
      EXPECT_TRUE(fi_cq_read(from.rx(), &entry, 1) == -FI_EAGAIN);
      rc = fi_cq_read(at.rx(), &entry, 1);
    }
    EXPECT_EQ(rc, 1);
    EXPECT_STREQ(text, "hello");
  }

  static constexpr uint64_t kTurns = 20'000'000;
};

TEST_F(OfiResolve, AClientFindsItsServer) {
  const Info serving = ask(kHere, kService, FI_SOURCE);
  ASSERT_NE(serving, nullptr);
  ASSERT_EQ(serving->src_addrlen, kNameBytes);
  ASSERT_NE(serving->src_addr, nullptr);
  EXPECT_EQ(serving->dest_addr, nullptr);
  OfiNode server(serving, 1);
  const Info asking = ask(kHere, kService, 0);
  ASSERT_NE(asking, nullptr);
  ASSERT_EQ(asking->src_addrlen, kNameBytes);
  ASSERT_EQ(asking->dest_addrlen, kNameBytes);
  OfiNode client(asking, 2);
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(insert(client, asking->dest_addr, &to), 1);
  expect_arrives(client, to, server);
  // The vector holds the endpoint's name, which is valid on other machines.
  OfiNode::Name found{};
  size_t bytes = found.size();
  ASSERT_EQ(fi_av_lookup(client.av(), to, found.data(), &bytes), 0);
  EXPECT_EQ(found, server.name());
  fi_addr_t by_call = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insertsvc(client.av(), "localhost", kService, &by_call, 0, nullptr), 1);
  expect_arrives(client, by_call, server);
  part(client, server);
}

// A node as fi_av_straddr() prints it, for endpoints of other machines.
TEST_F(OfiResolve, ANodeMayBeAName) {
  const Info info = ask(nullptr, nullptr, 0);
  OfiNode server(info, 1);
  OfiNode client(info, 2);
  char text[64];
  size_t count = sizeof(text);
  const OfiNode::Name name = server.name();
  ASSERT_STREQ(fi_av_straddr(client.av(), name.data(), text, &count), text);
  EXPECT_STREQ(text, "rio://1/0");
  const Info asking = ask(text, nullptr, 0);
  ASSERT_NE(asking, nullptr);
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(insert(client, asking->dest_addr, &to), 1);
  expect_arrives(client, to, server);
  part(client, server);
}

TEST_F(OfiResolve, AServiceHasOneServer) {
  const Info serving = ask(kHere, kService, FI_SOURCE);
  ASSERT_NE(serving, nullptr);
  {
    const OfiNode server(serving, 1);
    OfiNode other(ask(nullptr, nullptr, 0), 2);
    expect_taken(other, serving);
  }
  const OfiNode again(serving, 1);  // free once the first endpoint is closed
}

// Programs that exchange names are given the same service, without a node.
TEST_F(OfiResolve, WithoutANodeTheFirstEndpointServes) {
  const Info serving = ask(nullptr, kService, FI_SOURCE);
  ASSERT_NE(serving, nullptr);
  OfiNode first(serving, 1);
  OfiNode second(serving, 2);
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insertsvc(second.av(), nullptr, kService, &to, 0, nullptr), 1);
  expect_arrives(second, to, first);
  expect_arrives(first, first.insert(second), second);
  expect_taken(second, ask(kHere, kService, FI_SOURCE));
  part(first, second);
}

TEST_F(OfiResolve, AServiceWithoutAServerIsNotFound) {
  const Info asking = ask(kHere, kService, 0);
  ASSERT_NE(asking, nullptr);
  OfiNode client(asking, 2);
  fi_addr_t to = 0;
  EXPECT_EQ(insert(client, asking->dest_addr, &to), -FI_ECONNREFUSED);
  EXPECT_EQ(to, FI_ADDR_NOTAVAIL);
  int error = 0;
  EXPECT_EQ(fi_av_insert(client.av(), asking->dest_addr, 1, &to, FI_SYNC_ERR, &error), 0);
  EXPECT_EQ(error, FI_ECONNREFUSED);
  EXPECT_EQ(fi_av_insertsvc(client.av(), kHere, kService, &to, 0, nullptr), -FI_ECONNREFUSED);
  EXPECT_EQ(fi_av_insertsvc(client.av(), nullptr, nullptr, &to, 0, nullptr), -FI_EINVAL);
  // A node alone does not name an endpoint.
  const Info node = ask(kHere, nullptr, 0);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(insert(client, node->dest_addr, &to), -FI_EINVAL);
}

// A server in another process: found and refused to others while it lives, free after it was
// killed.
TEST_F(OfiResolve, AKilledServerLeavesItsServiceFree) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const OfiNode server(ask(kHere, kService, FI_SOURCE), 1);
    const bool told = write(ready[1], "r", 1) == 1;
    pause();
    _exit(told ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const Info asking = ask(kHere, kService, 0);
  OfiNode client(asking, 2);
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(insert(client, asking->dest_addr, &to), 1);
  const Info serving = ask(kHere, kService, FI_SOURCE);
  expect_taken(client, serving);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(insert(client, asking->dest_addr, &to), -FI_ECONNREFUSED);
  EXPECT_EQ(files_of_services(), 1u);  // the killed server's
  {
    const OfiNode other(ask(kHere, kOtherService, FI_SOURCE), 3);
    EXPECT_EQ(files_of_services(), 1u);  // a new service removes leftover files of others
  }
  EXPECT_EQ(files_of_services(), 0u);
  const OfiNode server(serving, 1);
  EXPECT_EQ(insert(client, asking->dest_addr, &to), 1);
  close(ready[0]);
  close(ready[1]);
}

struct Unresolved {
  const char* node;
  const char* service;
  uint64_t flags;
};

class OfiUnresolved : public OfiTest, public testing::WithParamInterface<Unresolved> {};

TEST_P(OfiUnresolved, IsNotOffered) {
  const auto [node, service, flags] = GetParam();
  EXPECT_EQ(ask(node, service, flags), nullptr);
  EXPECT_EQ(ask(node, service, flags | FI_SOURCE), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    All, OfiUnresolved,
    testing::Values(Unresolved{"192.0.2.1", kService, 0},  // reserved for documentation
                    Unresolved{"localhost", kService, FI_NUMERICHOST},
                    Unresolved{kHere, "65536", 0}, Unresolved{kHere, "-1", 0},
                    Unresolved{kHere, "", 0}, Unresolved{kHere, "92 28", 0},
                    Unresolved{kHere, "no-such-service", 0}, Unresolved{"rio://1", nullptr, 0},
                    Unresolved{"rio://1/0", kService, 0},
                    Unresolved{"rio://16777216/0", nullptr, 0},
                    Unresolved{"rio://1/65536", nullptr, 0}, Unresolved{"rio://x/0", nullptr, 0}));

TEST_F(OfiResolve, ASourceNeedsANodeOrService) {
  EXPECT_EQ(ask(nullptr, nullptr, FI_SOURCE), nullptr);
}

// Addresses in hints as other programs or providers write them.
TEST_F(OfiResolve, ForeignAddressesAreChecked) {
  std::vector<uint8_t> bytes(kNameBytes, 0x5A);
  for (const size_t length : {size_t{1}, size_t{16}, kNameBytes}) {
    Info wanted = hints();
    wanted->src_addr = std::memcpy(std::malloc(kNameBytes), bytes.data(), kNameBytes);
    wanted->src_addrlen = length;
    EXPECT_EQ(ask(nullptr, nullptr, 0, wanted), nullptr) << length;
    EXPECT_NE(ask(nullptr, kService, FI_SOURCE, wanted), nullptr)
        << length;  // the address is ignored
    std::swap(wanted->src_addr, wanted->dest_addr);
    std::swap(wanted->src_addrlen, wanted->dest_addrlen);
    EXPECT_EQ(ask(nullptr, nullptr, 0, wanted), nullptr) << length;
    EXPECT_NE(ask(nullptr, kService, 0, wanted), nullptr) << length;  // the address is ignored
  }
}

TEST_F(OfiResolve, AddressesInHintsAreReturned) {
  const Info first = ask(kHere, kService, 0);
  Info wanted = hints();
  wanted->dest_addr = std::memcpy(std::malloc(kNameBytes), first->dest_addr, kNameBytes);
  wanted->dest_addrlen = kNameBytes;
  const Info second = ask(nullptr, nullptr, 0, wanted);
  ASSERT_NE(second, nullptr);
  ASSERT_EQ(second->dest_addrlen, kNameBytes);
  EXPECT_EQ(std::memcmp(second->dest_addr, first->dest_addr, kNameBytes), 0);
}

TEST_F(OfiResolve, AnImpossibleSourceIsRefused) {
  const Info info = ask(nullptr, nullptr, 0);
  OfiNode node(info, 1);
  fid_ep* ep = nullptr;
  info->src_addrlen = kNameBytes - 1;
  EXPECT_EQ(fi_endpoint(node.domain(), info.get(), &ep, nullptr), -FI_EINVAL);
  info->src_addrlen = kNameBytes;
  static_cast<uint8_t*>(info->src_addr)[0] ^= 0xFF;
  EXPECT_EQ(fi_endpoint(node.domain(), info.get(), &ep, nullptr), -FI_EINVAL);
  OfiNode::Name name = node.name();
  std::memcpy(info->src_addr, name.data(), name.size());
  EXPECT_EQ(fi_endpoint(node.domain(), info.get(), &ep, nullptr), -FI_EADDRINUSE);
  constexpr size_t kDestId = 4;
  static_cast<uint8_t*>(info->src_addr)[kDestId] ^= 0x02;
  EXPECT_EQ(fi_endpoint(node.domain(), info.get(), &ep, nullptr), -FI_EADDRNOTAVAIL);
  // A name whose endpoint is closed may be taken again.
  node.close_endpoint();
  std::memcpy(info->src_addr, name.data(), name.size());
  ASSERT_EQ(fi_endpoint(node.domain(), info.get(), &ep, nullptr), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
}

}  // namespace
}  // namespace rio::test
