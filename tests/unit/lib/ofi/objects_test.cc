// Objects and what binds them: names, address vectors, queues of events; what is closed too early.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/lib/ofi/node.hpp"

namespace rio::test {
namespace {

class OfiObjects : public OfiTest {
 protected:
  OfiObjects() : info_(get_info(hints())), own_(info_, 1) {}

  Info info_;
  OfiNode own_;
};

TEST_F(OfiObjects, AnObjectInUseIsNotClosed) {
  EXPECT_EQ(fi_close(&own_.domain()->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&own_.fabric()->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&own_.av()->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&own_.tx()->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&own_.rx()->fid), -FI_EBUSY);
}

TEST_F(OfiObjects, ANameNeedsRoom) {
  size_t bytes = 0;
  EXPECT_EQ(fi_getname(&own_.ep()->fid, nullptr, &bytes), -FI_ETOOSMALL);
  ASSERT_GT(bytes, 0u);
  std::vector<uint8_t> name(bytes);
  bytes -= 1;
  EXPECT_EQ(fi_getname(&own_.ep()->fid, name.data(), &bytes), -FI_ETOOSMALL);
  EXPECT_EQ(fi_getname(&own_.ep()->fid, name.data(), &bytes), 0);
  EXPECT_EQ(bytes, name.size());
}

TEST_F(OfiObjects, TheVectorKnowsWhomItWasGiven) {
  const OfiNode::Name name = own_.name();
  const fi_addr_t at = own_.insert(own_);
  OfiNode::Name found{};
  size_t bytes = found.size();
  ASSERT_EQ(fi_av_lookup(own_.av(), at, found.data(), &bytes), 0);
  EXPECT_EQ(std::memcmp(found.data(), name.data(), bytes), 0);
  char text[64];
  size_t count = sizeof(text);
  EXPECT_STREQ(fi_av_straddr(own_.av(), name.data(), text, &count), text);
  EXPECT_EQ(std::string(text).rfind("rio://", 0), 0u) << text;
  fi_addr_t gone = at;
  ASSERT_EQ(fi_av_remove(own_.av(), &gone, 1, 0), 0);
  EXPECT_EQ(fi_av_remove(own_.av(), &gone, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_av_lookup(own_.av(), at, found.data(), &bytes), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(own_.ep(), nullptr, 0, at, 0), -FI_EINVAL);
}

// Foreign bytes: each but the right ones is refused, and tells so.
TEST_F(OfiObjects, NamesThatCannotBe) {
  OfiNode::Name name = own_.name();
  for (const size_t at : {size_t{0}, size_t{3}, size_t{7}, size_t{12}, size_t{15}}) {
    OfiNode::Name wrong = name;
    wrong[at] ^= 0x80;
    fi_addr_t out = 0;
    int error = 0;
    EXPECT_EQ(fi_av_insert(own_.av(), wrong.data(), 1, &out, FI_SYNC_ERR, &error), 0) << at;
    EXPECT_EQ(out, FI_ADDR_NOTAVAIL);
    EXPECT_GT(error, 0);
    EXPECT_LT(fi_av_insert(own_.av(), wrong.data(), 1, &out, 0, nullptr), 0) << at;
  }
}

TEST_F(OfiObjects, NoNames) {
  const OfiNode::Name name = own_.name();
  const OfiNode::Name foreign{};
  fi_addr_t out = 0;
  EXPECT_EQ(fi_av_insert(own_.av(), nullptr, 1, &out, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(own_.av(), nullptr, 0, &out, 0, nullptr), 0);
  EXPECT_EQ(fi_av_insert(own_.av(), name.data(), 0, &out, 0, nullptr), 0);
  EXPECT_EQ(fi_av_insert(own_.av(), foreign.data(), 1, &out, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(own_.av(), name.data(), 1, &out, FI_SYNC_ERR, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insert(own_.av(), name.data(), 1, &out, FI_RECV, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_insert(own_.av(), name.data(), 1, &out, FI_MORE, nullptr), 1);
  EXPECT_EQ(fi_av_remove(own_.av(), nullptr, 1, 0), -FI_EINVAL);
}

TEST_F(OfiObjects, RoomOfAnySize) {
  const OfiNode::Name name = own_.name();
  const fi_addr_t at = own_.insert(own_);
  for (const size_t room : {size_t{0}, size_t{1}, name.size() - 1, name.size(), size_t{100}}) {
    std::vector<uint8_t> found(room + 1, 0xEE);
    size_t bytes = room;
    ASSERT_EQ(fi_av_lookup(own_.av(), at, found.data(), &bytes), 0);
    EXPECT_EQ(bytes, name.size());
    EXPECT_EQ(std::memcmp(found.data(), name.data(), std::min(room, bytes)), 0);
    EXPECT_EQ(found.back(), 0xEE) << room;
    std::vector<char> text(room + 1, '#');
    size_t count = room;
    fi_av_straddr(own_.av(), name.data(), text.data(), &count);
    EXPECT_EQ(count, sizeof("rio://1/0"));
    EXPECT_EQ(text.back(), '#') << room;
    bytes = room;
    const int rc = fi_getname(&own_.ep()->fid, room == 0 ? nullptr : found.data(), &bytes);
    EXPECT_EQ(rc, room < name.size() ? -FI_ETOOSMALL : 0) << room;
    EXPECT_EQ(bytes, name.size());
  }
  char text[16];
  size_t count = sizeof(text);
  EXPECT_STREQ(fi_av_straddr(own_.av(), OfiNode::Name{}.data(), text, &count), "rio://?");
}

// Another domain has this destID, so messages would go nowhere.
TEST_F(OfiObjects, OurDestIdOfAnother) {
  OfiNode::Name name = own_.name();
  constexpr size_t kOwner = 8;  // the random part
  name[kOwner] ^= 0x01;
  fi_addr_t out = 0;
  int error = 0;
  EXPECT_EQ(fi_av_insert(own_.av(), name.data(), 1, &out, FI_SYNC_ERR, &error), 0);
  EXPECT_EQ(error, FI_EADDRINUSE);
}

TEST_F(OfiObjects, ATableHasARowForEach) {
  const OfiNode::Name name = own_.name();
  uint8_t three[3][std::tuple_size_v<OfiNode::Name>];
  for (auto& each : three) {
    std::memcpy(each, name.data(), sizeof(each));
  }
  three[1][0] ^= 0xFF;
  ASSERT_EQ(fi_av_insert(own_.av(), three, 3, nullptr, 0, nullptr), 2);
  EXPECT_EQ(fi_tinject(own_.ep(), "0", 1, 0, 1), 0);
  EXPECT_EQ(fi_tinject(own_.ep(), "1", 1, 1, 1), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(own_.ep(), "2", 1, 2, 1), 0);
}

TEST_F(OfiObjects, AVectorOfNoCertainTypeSaysItsType) {
  fi_av_attr attr{};
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(own_.domain(), &attr, &av, nullptr), 0);
  const Held<fid_av> held(av);
  EXPECT_EQ(attr.type, FI_AV_TABLE);
}

TEST_F(OfiObjects, AnEndpointIsEnabledOnceAndWithAll) {
  EXPECT_EQ(fi_enable(own_.ep()), -FI_EOPBADSTATE);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(own_.domain(), info_.get(), &ep, nullptr), 0);
  const Held<fid_ep> held(ep);
  size_t bytes = 64;
  uint8_t name[64];
  EXPECT_EQ(fi_getname(&ep->fid, name, &bytes), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_enable(ep), -FI_ENOAV);
  ASSERT_EQ(fi_ep_bind(ep, &own_.av()->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOCQ);
  EXPECT_EQ(fi_ep_bind(ep, &own_.tx()->fid, 0), -FI_EBADFLAGS);
  ASSERT_EQ(fi_ep_bind(ep, &own_.tx()->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOCQ);
  ASSERT_EQ(fi_ep_bind(ep, &own_.rx()->fid, FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), 0);
}

TEST_F(OfiObjects, AnEndpointThatIsNotEnabledTakesNoCalls) {
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(own_.domain(), info_.get(), &ep, nullptr), 0);
  const Held<fid_ep> held(ep);
  uint64_t word = 0;
  const auto expect_refused = [&] {
    EXPECT_EQ(fi_recv(ep, &word, sizeof(word), nullptr, 0, nullptr), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_send(ep, &word, sizeof(word), nullptr, 0, nullptr), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_inject(ep, &word, sizeof(word), 0), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_trecv(ep, &word, sizeof(word), nullptr, 0, 0, 0, nullptr), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_tsend(ep, &word, sizeof(word), nullptr, 0, 0, nullptr), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_write(ep, &word, sizeof(word), nullptr, 0, 0, 0, nullptr), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_inject_atomic(ep, &word, 1, 0, 0, 0, FI_UINT64, FI_SUM), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_cancel(&ep->fid, &word), -FI_ENOENT);
  };
  expect_refused();
  ASSERT_EQ(fi_ep_bind(ep, &own_.av()->fid, 0), 0);
  expect_refused();
}

TEST_F(OfiObjects, MessagesWithATagAreRefusedWithoutTheCapability) {
  uint64_t word = 0;
  OfiNode node(get_info(hints(FI_MSG)), 8);
  fid_ep* const ep = node.ep();
  EXPECT_EQ(fi_trecv(ep, &word, sizeof(word), nullptr, 0, 0, 0, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_tsend(ep, &word, sizeof(word), nullptr, 0, 0, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_write(ep, &word, sizeof(word), nullptr, 0, 0, 0, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_inject_atomic(ep, &word, 1, 0, 0, 0, FI_UINT64, FI_SUM), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_recv(ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
}

TEST_F(OfiObjects, MessagesWithoutATagAreRefusedWithoutTheCapability) {
  uint64_t word = 0;
  OfiNode node(get_info(hints(FI_TAGGED)), 8);
  fid_ep* const ep = node.ep();
  EXPECT_EQ(fi_recv(ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_send(ep, &word, sizeof(word), nullptr, 0, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_trecv(ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr), 0);
}

TEST_F(OfiObjects, SourcesOfAVectorThatIsClosedAreUnknown) {
  fi_av_attr attr{};
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(own_.domain(), &attr, &av, nullptr), 0);
  Held<fid_av> vector(av);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(own_.domain(), info_.get(), &ep, nullptr), 0);
  Held<fid_ep> held(ep);
  ASSERT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &own_.rx()->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep), 0);
  OfiNode::Name name{};
  size_t bytes = name.size();
  ASSERT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
  ASSERT_EQ(fi_av_insert(av, name.data(), 1, nullptr, 0, nullptr), 1);
  uint64_t word = 0;
  ASSERT_EQ(fi_trecv(ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_tinject(ep, "a message", 8, 0, 1), 0);
  held.reset();
  vector.reset();
  fi_cq_tagged_entry entry{};
  fi_addr_t source = 0;
  ASSERT_EQ(fi_cq_readfrom(own_.rx(), &entry, 1, &source), 1);
  EXPECT_EQ(entry.len, 8u);
  EXPECT_EQ(source, FI_ADDR_NOTAVAIL);
}

TEST_F(OfiObjects, ADomainHasSoManyEndpoints) {
  std::vector<Held<fid_ep>> held;
  int rc = 0;
  while (rc == 0 && held.size() < 1000) {
    fid_ep* ep = nullptr;
    rc = fi_endpoint(own_.domain(), info_.get(), &ep, nullptr);
    if (rc == 0) {
      held.emplace_back(ep);
      ASSERT_EQ(fi_ep_bind(ep, &own_.av()->fid, 0), 0);
      ASSERT_EQ(fi_ep_bind(ep, &own_.tx()->fid, FI_TRANSMIT | FI_RECV), 0);
      ASSERT_EQ(fi_enable(ep), 0);
    }
  }
  EXPECT_EQ(rc, -FI_ENOSPC);
  EXPECT_EQ(held.size() + 1, info_->domain_attr->ep_cnt);  // own_ has one
}

TEST_F(OfiObjects, EventsOfTheUser) {
  fi_eq_attr attr{};
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(own_.fabric(), &attr, &eq, nullptr), 0);
  const Held<fid_eq> held(eq);
  uint32_t event = 0;
  char out[8] = {};
  EXPECT_EQ(fi_eq_read(eq, &event, out, sizeof(out), 0), -FI_EAGAIN);
  ASSERT_EQ(fi_eq_write(eq, FI_NOTIFY, "abc", 4, 0), 4);
  EXPECT_EQ(fi_eq_read(eq, &event, out, 3, 0), -FI_ETOOSMALL);
  EXPECT_EQ(fi_eq_read(eq, &event, out, sizeof(out), FI_PEEK), 4);
  EXPECT_EQ(fi_eq_sread(eq, &event, out, sizeof(out), 0, 0), 4);
  EXPECT_EQ(event, static_cast<uint32_t>(FI_NOTIFY));
  EXPECT_STREQ(out, "abc");
  EXPECT_EQ(fi_eq_read(eq, &event, out, sizeof(out), 0), -FI_EAGAIN);
}

}  // namespace
}  // namespace rio::test
