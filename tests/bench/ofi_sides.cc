#include "tests/bench/ofi_sides.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace rio::bench {
namespace {

OfiSide open_side(fid_fabric* fabric, fi_info* info) {
  OfiSide side;
  check("fi_domain", fi_domain(fabric, info, &side.domain, nullptr));
  fi_av_attr av{};
  fi_cq_attr cq{};
  cq.format = FI_CQ_FORMAT_CONTEXT;
  check("fi_av_open", fi_av_open(side.domain, &av, &side.av, nullptr));
  check("fi_cq_open", fi_cq_open(side.domain, &cq, &side.cq, nullptr));
  check("fi_endpoint", fi_endpoint(side.domain, info, &side.ep, nullptr));
  check("fi_ep_bind", fi_ep_bind(side.ep, &side.av->fid, 0));
  check("fi_ep_bind", fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV));
  check("fi_enable", fi_enable(side.ep));
  return side;
}

fi_addr_t insert(const OfiSide& side, const OfiSide& peer) {
  std::array<uint8_t, 64> name{};
  size_t name_bytes = name.size();
  fi_addr_t address = 0;
  check("fi_getname", fi_getname(&peer.ep->fid, name.data(), &name_bytes));
  check("fi_av_insert", fi_av_insert(side.av, name.data(), 1, &address, 0, nullptr) - 1);
  return address;
}

}  // namespace

void check(const char* what, ssize_t rc) {
  if (rc != 0) {
    std::fprintf(stderr, "error: %s: %s\n", what, fi_strerror(static_cast<int>(-rc)));
    std::exit(1);
  }
}

OfiSides::OfiSides(uint64_t caps) {
  if (std::getenv("FI_RIO_CARD") == nullptr) {
    setenv("FI_RIO_FABRIC", ("bench-ofi-" + std::to_string(getpid())).c_str(), 1);
  }
  fi_info* const hints = fi_allocinfo();
  hints->caps = caps;
  hints->fabric_attr->prov_name = strdup("rio");
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  fi_info* info = nullptr;
  check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info));
  check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr));
  one = open_side(fabric, info);
  other = open_side(fabric, info);
  peer_of_one = insert(one, other);
  peer_of_other = insert(other, one);
  fi_freeinfo(info);
  fi_freeinfo(hints);
}

OfiSides::~OfiSides() {
  for (const OfiSide& side : {one, other}) {
    check("fi_close", fi_close(&side.ep->fid));
    check("fi_close", fi_close(&side.cq->fid));
    check("fi_close", fi_close(&side.av->fid));
    check("fi_close", fi_close(&side.domain->fid));
  }
  check("fi_close", fi_close(&fabric->fid));
}

bool poll(const OfiSide& side) {
  fi_cq_entry entry{};
  const ssize_t rc = fi_cq_read(side.cq, &entry, 1);
  if (rc == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    static_cast<void>(fi_cq_readerr(side.cq, &error, 0));
    check("an operation", -error.err);
  }
  return rc == 1;
}

}  // namespace rio::bench
