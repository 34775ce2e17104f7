#include "fpga/wire/udp/seat.hpp"

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "base/formatted.hpp"
#include "base/number.hpp"
#include "base/text_file.hpp"
#include "fpga/wire/udp/datagram.hpp"
#include "fpga/wire/udp/path.hpp"

namespace rio::wire::udp {
namespace {

constexpr uint32_t kPatienceMaxS = 3600;
constexpr uint32_t kLastId = 0xFFFFFFFE;
constexpr size_t kMembersMax = 65536;
constexpr size_t kBytesMax = size_t{32} << 20;

/// Reads a line. @return the error; empty: none. @param out unchanged by an empty line.
[[nodiscard]] std::string read_line(std::string line, std::vector<Place>* out) {
  line.resize(std::min(line.find('#'), line.size()));
  std::istringstream words(line);
  std::string id;
  std::string address;
  std::string more;
  words >> id >> address >> more;
  if (id.empty()) {
    return {};
  }
  Place place;
  if (!base::read_number(id, 1, kLastId, &place.id) || address.empty() || !more.empty()) {
    return "write DESTID HOST:PORT, with a destID from 1";
  }
  if (Address::parse(address, true, &place.address) != 0) {
    return "'" + address + "' is not a known host with a port: write HOST:PORT";
  }
  if (!place.address.is_one_place()) {
    return "'" + address +
           "' is the address of all interfaces, or of a group; write that of the "
           "machine";
  }
  for (const Place& other : *out) {
    if (other.id == place.id) {
      return "destID " + id + " is listed twice; give each card its own";
    }
    if (other.address == place.address) {
      return address + " is listed twice; give each card a port of its own";
    }
  }
  out->push_back(place);
  return {};
}

[[nodiscard]] int find_local(const Seat& seat, Address* out, std::string* error) {
  Address at;
  if (Address::local(seat.bind, seat.port, &at) != 0) {
    *error =
        "bind=" + seat.bind + ": neither an address of this machine, nor an interface that is up";
    return -EADDRNOTAVAIL;
  }
  if (!at.is_one_place()) {
    *error = "bind=" + seat.bind +
             ": others cannot reach the address of all interfaces, or of a group; give an address "
             "of this machine, or an interface";
    return -EADDRNOTAVAIL;
  }
  *out = at;
  return 0;
}

}  // namespace

int read_members(const std::string& path, std::vector<Place>* out, std::string* error) {
  std::string text;
  if (const int rc = base::read_text_file(path, kBytesMax, &text, error); rc != 0) {
    return rc;
  }
  std::istringstream file(text);
  std::vector<Place> all;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    std::string wrong =
        all.size() < kMembersMax ? read_line(std::move(line), &all) : "more than 65536 members";
    if (!wrong.empty()) {
      return base::fail(error, "%s line %zu: %s", path.c_str(), number, wrong.c_str());
    }
  }
  *out = std::move(all);
  return 0;
}

int find_places(const Seat& seat, Places* out, std::string* error) {
  if (seat.members.empty() != (seat.id == 0)) {
    return base::fail(error,
                      "id= and members= belong together: the file says where each destID is");
  }
  if (seat.ids < 1 || seat.ids > kIdsMax || seat.patience_s < 1 ||
      seat.patience_s > kPatienceMaxS) {
    return base::fail(error, "a card has 1 to 32 destIDs, and patience is 1 to 3600 seconds");
  }
  if (seat.members.empty()) {
    return find_local(seat, &out->own, error);
  }
  std::vector<Place> members;
  if (const int rc = read_members(seat.members, &members, error); rc != 0) {
    return rc;
  }
  Places places;
  for (const Place& place : members) {
    if (place.id == seat.id) {
      places.own = place.address;
    } else {
      places.others.push_back(place);
    }
  }
  if (places.own.family() == AF_UNSPEC) {
    return base::fail(error, "%s: no line for destID %u; add one, or give id= one of the file",
                      seat.members.c_str(), seat.id);
  }
  *out = std::move(places);
  return 0;
}

int check_paths(const Seat& seat, const Address& own, const std::vector<Place>& others,
                std::string* warning, std::string* error) {
  uint32_t more = 0;
  std::string first;
  for (const Place& other : others) {
    const Verdict verdict = judge(own, other.address, path_between(own, other.address));
    if (!verdict.possible) {
      *error = seat.members + ": " + verdict.text;
      return -EADDRNOTAVAIL;
    }
    more += verdict.text.empty() || first.empty() ? 0 : 1;
    first = first.empty() ? verdict.text : first;
  }
  if (!first.empty()) {
    *warning = seat.members + ": " + first +
               (more == 0 ? "" : "; the same holds for " + std::to_string(more) + " other members");
  }
  return 0;
}

}  // namespace rio::wire::udp
