// Addresses in the format FI_SOCKADDR_IN, as programs written for IP use them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstring>
#include <string>

#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

constexpr auto kHere = "127.0.0.1";
constexpr auto kService = "9228";  // free, since the folder is the test's own
constexpr uint16_t kServicePort = 9228;
constexpr uint64_t kTurns = 20'000'000;

[[nodiscard]] Info socket_hints(uint32_t format = FI_SOCKADDR_IN) {
  Info wanted = hints(FI_TAGGED | FI_MSG | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV);
  wanted->addr_format = format;
  return wanted;
}

[[nodiscard]] Info ask(const char* node, const char* service, uint64_t flags,
                       const Info& wanted = socket_hints()) {
  return get_info(wanted, node, service, flags);
}

[[nodiscard]] sockaddr_in socket_of(const char* address, uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, address, &made.sin_addr), 1);
  return made;
}

[[nodiscard]] sockaddr_in name_of(OfiNode& node) {
  sockaddr_in name{};
  size_t bytes = sizeof(name);
  EXPECT_EQ(fi_getname(&node.ep()->fid, &name, &bytes), 0);
  EXPECT_EQ(bytes, sizeof(name));
  return name;
}

[[nodiscard]] bool equal(const sockaddr_in& a, const sockaddr_in& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

class OfiSocket : public OfiTest {
 protected:
  explicit OfiSocket(const std::string& kind = "emu") : OfiTest(kind) {}

  static fi_addr_t insert(OfiNode& node, const sockaddr_in& address) {
    fi_addr_t out = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(node.av(), &address, 1, &out, 0, nullptr), 1);
    return out;
  }
  static void work(OfiNode& a, OfiNode& b) {
    constexpr uint32_t kAnswers = 100;
    for (uint32_t turn = 0; turn < kAnswers; ++turn) {
      fi_cq_tagged_entry none[1];
      EXPECT_TRUE(fi_cq_read(a.rx(), none, 0) <= 0 && fi_cq_read(b.rx(), none, 0) <= 0);
    }
  }
  static void part(OfiNode& a, OfiNode& b) {
    work(a, b);
    a.close_endpoint();
    work(b, b);
    b.close_endpoint();
  }
  /// @return the message's source, as reported to the receiver.
  static fi_addr_t pass(OfiNode& from, fi_addr_t to, OfiNode& at,
                        fi_addr_t expected = FI_ADDR_UNSPEC) {
    char text[8] = {};
    EXPECT_EQ(fi_trecv(at.ep(), text, sizeof(text), nullptr, expected, 1, 0, nullptr), 0);
    EXPECT_EQ(fi_tsend(from.ep(), "hello", 6, nullptr, to, 1, nullptr), 0);
    ssize_t rc = -FI_EAGAIN;
    fi_addr_t source = FI_ADDR_UNSPEC;
    for (uint64_t turn = 0; rc == -FI_EAGAIN && turn < kTurns; ++turn) {
      fi_cq_tagged_entry entry{};
      EXPECT_EQ(fi_cq_read(from.rx(), &entry, 1), -FI_EAGAIN);
      rc = fi_cq_readfrom(at.rx(), &entry, 1, &source);
    }
    EXPECT_EQ(rc, 1);
    EXPECT_STREQ(text, "hello");
    return source;
  }
};

TEST_F(OfiSocket, IsOfferedOnRequestOnly) {
  EXPECT_EQ(ask(nullptr, nullptr, 0, hints())->addr_format, uint32_t{FI_FORMAT_UNSPEC});
  for (const uint32_t format : {FI_SOCKADDR, FI_SOCKADDR_IN}) {
    const Info info = ask(kHere, kService, FI_SOURCE, socket_hints(format));
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->addr_format, uint32_t{FI_SOCKADDR_IN});
    ASSERT_EQ(info->src_addrlen, sizeof(sockaddr_in));
    sockaddr_in source{};
    std::memcpy(&source, info->src_addr, sizeof(source));
    EXPECT_TRUE(equal(source, socket_of(kHere, kServicePort)));
  }
  EXPECT_EQ(ask("192.0.2.1", kService, 0), nullptr);  // reserved for documentation
  EXPECT_EQ(ask("rio://1/0", nullptr, 0), nullptr);   // cannot be expressed in this format
  EXPECT_EQ(ask("::1", kService, 0), nullptr);
}

TEST_F(OfiSocket, AddressesInHintsAreReturned) {
  const sockaddr_in here = socket_of(kHere, kServicePort);
  Info wanted = socket_hints();
  wanted->dest_addr = std::memcpy(std::malloc(sizeof(here)), &here, sizeof(here));
  wanted->dest_addrlen = sizeof(here);
  const Info info = ask(nullptr, nullptr, 0, wanted);
  ASSERT_NE(info, nullptr);
  ASSERT_EQ(info->dest_addrlen, sizeof(here));
  EXPECT_EQ(std::memcmp(info->dest_addr, &here, sizeof(here)), 0);
  wanted->dest_addrlen = sizeof(here) - 1;
  EXPECT_EQ(ask(nullptr, nullptr, 0, wanted), nullptr);
  wanted->dest_addrlen = sizeof(here);
  static_cast<sockaddr_in*>(wanted->dest_addr)->sin_family = AF_INET6;
  EXPECT_EQ(ask(nullptr, nullptr, 0, wanted), nullptr);
}

// The address is inserted before its endpoint starts.
TEST_F(OfiSocket, APeerMayStartLater) {
  OfiNode client(ask(nullptr, nullptr, 0), 2);
  const fi_addr_t to = insert(client, socket_of(kHere, kServicePort));
  EXPECT_EQ(fi_tsend(client.ep(), "hello", 6, nullptr, to, 1, nullptr), -FI_ECONNREFUSED);
  EXPECT_EQ(fi_tinject(client.ep(), "hello", 6, to, 1), -FI_ECONNREFUSED);
  EXPECT_EQ(fi_send(client.ep(), "hello", 6, nullptr, to, nullptr), -FI_ECONNREFUSED);
  EXPECT_EQ(fi_write(client.ep(), "hello", 6, nullptr, to, 0, 0, nullptr), -FI_ECONNREFUSED);
  char text[8];
  EXPECT_EQ(fi_trecv(client.ep(), text, 8, nullptr, to, 1, 0, nullptr), -FI_ECONNREFUSED);
  OfiNode server(ask(kHere, kService, FI_SOURCE), 1);
  EXPECT_TRUE(equal(name_of(server), socket_of(kHere, kServicePort)));
  pass(client, to, server);
  sockaddr_in stored{};
  size_t bytes = sizeof(stored);
  ASSERT_EQ(fi_av_lookup(client.av(), to, &stored, &bytes), 0);
  EXPECT_EQ(bytes, sizeof(stored));
  EXPECT_TRUE(equal(stored, socket_of(kHere, kServicePort)));
  part(client, server);
}

// An endpoint that names no port gets a free one, which peers may use as an address. A message from
// a row that was never used is recognized by its source.
TEST_F(OfiSocket, EndpointsWithoutAPortGetOne) {
  OfiNode a(ask(nullptr, nullptr, 0), 1);
  OfiNode b(ask(nullptr, nullptr, 0), 2);
  const sockaddr_in name_a = name_of(a);
  const sockaddr_in name_b = name_of(b);
  EXPECT_NE(name_a.sin_port, 0);
  EXPECT_NE(name_a.sin_port, name_b.sin_port);
  insert(b, socket_of(kHere, kServicePort));  // served by no endpoint
  const fi_addr_t to_b = insert(a, name_b);
  EXPECT_EQ(pass(a, to_b, b), FI_ADDR_NOTAVAIL);
  const fi_addr_t to_a = insert(b, name_a);
  EXPECT_EQ(pass(a, to_b, b), to_a);
  EXPECT_EQ(pass(b, to_a, a, to_b), to_b);
  part(a, b);
}

TEST_F(OfiSocket, ADirectedReceiveFindsItsSource) {
  OfiNode a(ask(nullptr, nullptr, 0), 1);
  OfiNode b(ask(nullptr, nullptr, 0), 2);
  const fi_addr_t to_b = insert(a, name_of(b));
  const fi_addr_t to_a = insert(b, name_of(a));
  EXPECT_EQ(pass(a, to_b, b, to_a), to_a);
  part(a, b);
}

TEST_F(OfiSocket, APortHasOneEndpoint) {
  const Info serving = ask(kHere, kService, FI_SOURCE);
  OfiNode server(serving, 1);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(server.domain(), serving.get(), &ep, nullptr), 0);
  const Held<fid_ep> held(ep);
  ASSERT_EQ(fi_ep_bind(ep, &server.av()->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &server.tx()->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), -FI_EADDRINUSE);
}

TEST_F(OfiSocket, AnotherMachineIsUnreachable) {
  OfiNode node(ask(nullptr, nullptr, 0), 1);
  const fi_addr_t to = insert(node, socket_of("192.0.2.1", kServicePort));
  EXPECT_EQ(fi_tsend(node.ep(), "hello", 6, nullptr, to, 1, nullptr), -FI_EHOSTUNREACH);
  fi_addr_t gone = to;
  EXPECT_EQ(fi_av_remove(node.av(), &gone, 1, 0), 0);
  EXPECT_EQ(fi_av_remove(node.av(), &gone, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_tsend(node.ep(), "hello", 6, nullptr, to, 1, nullptr), -FI_EINVAL);
}

// Programs of this format expect the number of addresses, as `man fi_av` has it.
TEST_F(OfiSocket, BadAddressesAreRefused) {
  OfiNode node(ask(nullptr, nullptr, 0), 1);
  sockaddr_in other_family = socket_of(kHere, kServicePort);
  other_family.sin_family = AF_INET6;
  const std::array<sockaddr_in, 5> all = {sockaddr_in{}, socket_of(kHere, 0),
                                          socket_of("224.0.0.1", kServicePort), other_family,
                                          socket_of(kHere, kServicePort)};
  for (size_t i = 0; i < all.size() - 1; ++i) {
    fi_addr_t out = 0;
    EXPECT_EQ(fi_av_insert(node.av(), &all[i], 1, &out, 0, nullptr), 0) << i;
    EXPECT_EQ(out, FI_ADDR_NOTAVAIL) << i;
  }
  std::array<int, all.size()> errors{};
  std::array<fi_addr_t, all.size()> out{};
  EXPECT_EQ(fi_av_insert(node.av(), all.data(), all.size(), out.data(), FI_SYNC_ERR, errors.data()),
            1);
  EXPECT_EQ(errors, (std::array<int, 5>{FI_EINVAL, FI_EINVAL, FI_EINVAL, FI_EINVAL, 0}));
  EXPECT_NE(out.back(), FI_ADDR_NOTAVAIL);
  EXPECT_EQ(fi_av_insert(node.av(), nullptr, 1, out.data(), 0, nullptr), -FI_EINVAL);
}

TEST_F(OfiSocket, PeersAreFoundByNodeAndService) {
  OfiNode node(ask(nullptr, nullptr, 0), 1);
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insertsvc(node.av(), kHere, kService, &to, 0, nullptr), 1);
  sockaddr_in stored{};
  size_t bytes = sizeof(stored);
  ASSERT_EQ(fi_av_lookup(node.av(), to, &stored, &bytes), 0);
  EXPECT_TRUE(equal(stored, socket_of(kHere, kServicePort)));
  char text[64];
  size_t count = sizeof(text);
  EXPECT_STREQ(fi_av_straddr(node.av(), &stored, text, &count), "fi_sockaddr_in://127.0.0.1:9228");
  EXPECT_EQ(count, std::strlen(text) + 1);
}

TEST_F(OfiSocket, AnImpossibleSourceIsRefused) {
  const Info info = ask(nullptr, nullptr, 0);
  OfiNode node(info, 1);
  fid_ep* ep = nullptr;
  info->src_addrlen = sizeof(sockaddr_in) - 1;
  EXPECT_EQ(fi_endpoint(node.domain(), info.get(), &ep, nullptr), -FI_EINVAL);
  info->src_addrlen = sizeof(sockaddr_in);
  const sockaddr_in far = socket_of("192.0.2.1", kServicePort);
  std::memcpy(info->src_addr, &far, sizeof(far));
  EXPECT_EQ(fi_endpoint(node.domain(), info.get(), &ep, nullptr), -FI_EADDRNOTAVAIL);
}

class OfiSocketAnew : public OfiSocket {
 protected:
  OfiSocketAnew() : OfiSocket("shm") {}
};

// A server ends, and another one serves its port.
TEST_F(OfiSocketAnew, ARestartedServerIsFoundAgain) {
  OfiNode client(ask(nullptr, nullptr, 0), 0);
  const fi_addr_t to = insert(client, socket_of(kHere, kServicePort));
  const Info serving = ask(kHere, kService, FI_SOURCE);
  {
    OfiNode server(serving, 0);
    pass(client, to, server);
    work(client, server);
  }
  // Sends before the news of the end arrives fail; then the service is looked up again.
  ssize_t rc = 0;
  for (uint64_t turn = 0; rc != -FI_ECONNREFUSED && turn < kTurns; ++turn) {
    rc = fi_tsend(client.ep(), "lost?", 6, nullptr, to, 2, nullptr);
    fi_cq_tagged_entry entry{};
    if (fi_cq_read(client.tx(), &entry, 1) == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      EXPECT_EQ(fi_cq_readerr(client.tx(), &error, 0), 1);
    }
  }
  ASSERT_EQ(rc, -FI_ECONNREFUSED);
  OfiNode server(serving, 0);
  pass(client, to, server);
  part(client, server);
}

// FI_EVENT: insertions are reported in an event queue, errors first.
class OfiAvEvents : public OfiSocket, public testing::WithParamInterface<fi_av_type> {};

TEST_P(OfiAvEvents, ReportInsertions) {
  OfiNode node(ask(nullptr, nullptr, 0), 1);
  fi_av_attr attr{};
  attr.type = GetParam();
  attr.flags = FI_EVENT;
  fi_eq_attr eq_attr{};
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(node.fabric(), &eq_attr, &eq, nullptr), 0);
  const Held<fid_eq> held_eq(eq);
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(node.domain(), &attr, &av, nullptr), 0);
  const Held<fid_av> held_av(av);
  const std::array<sockaddr_in, 2> both = {sockaddr_in{}, socket_of(kHere, kServicePort)};
  std::array<fi_addr_t, 2> out{};
  std::array<int, 2> errors{};
  EXPECT_EQ(fi_av_insert(av, both.data(), 2, out.data(), 0, nullptr), -FI_ENOEQ);
  EXPECT_EQ(fi_av_bind(av, &node.tx()->fid, 0), -FI_EINVAL);
  ASSERT_EQ(fi_av_bind(av, &eq->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_av_insert(av, both.data(), 2, out.data(), FI_SYNC_ERR, errors.data()),
            -FI_EBADFLAGS);
  int context = 0;
  ASSERT_EQ(fi_av_insert(av, both.data(), 2, out.data(), 0, &context), 0);
  EXPECT_EQ(out[0], FI_ADDR_NOTAVAIL);
  EXPECT_NE(out[1], FI_ADDR_NOTAVAIL);
  uint32_t event = 0;
  fi_eq_entry done{};
  fi_eq_err_entry error{};
  ASSERT_EQ(fi_eq_read(eq, &event, &done, sizeof(done), 0), -FI_EAVAIL);
  ASSERT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
  EXPECT_TRUE(error.fid == &av->fid && error.context == &context);
  EXPECT_EQ(error.data, 0u);
  EXPECT_EQ(error.err, FI_EINVAL);
  EXPECT_EQ(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
  ASSERT_EQ(fi_eq_read(eq, &event, &done, sizeof(done), 0), static_cast<ssize_t>(sizeof(done)));
  EXPECT_EQ(event, uint32_t{FI_AV_COMPLETE});
  EXPECT_TRUE(done.fid == &av->fid && done.context == &context);
  EXPECT_EQ(done.data, 1u);
  EXPECT_EQ(fi_eq_read(eq, &event, &done, sizeof(done), 0), -FI_EAGAIN);
}

INSTANTIATE_TEST_SUITE_P(All, OfiAvEvents, testing::Values(FI_AV_MAP, FI_AV_TABLE));

}  // namespace
}  // namespace rio::test
