#include "fpga/wire/udp/members_file.hpp"

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "base/number.hpp"
#include "base/text_file.hpp"

namespace rio::wire::udp {
namespace {

constexpr uint32_t kLastId = 0xFFFFFFFE;
constexpr size_t kMembersMax = 65536;
constexpr size_t kBytesMax = size_t{32} << 20;

/// Read a line. @return its fault; empty: none. @param out untouched for an empty line.
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
    return "'" + address + "' is no host that can be found, with a port: write HOST:PORT";
  }
  if (!place.address.is_one_place()) {
    return "'" + address +
           "' is the address of all interfaces, or of a group; write that of the "
           "machine";
  }
  for (const Place& other : *out) {
    if (other.id == place.id) {
      return "destID " + id + " stands there twice; give each card its own";
    }
    if (other.address == place.address) {
      return address + " stands there twice; give each card a port of its own";
    }
  }
  out->push_back(place);
  return {};
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
      *error = path;
      error->append(" line ").append(std::to_string(number)).append(": ").append(wrong);
      return -EINVAL;
    }
  }
  *out = std::move(all);
  return 0;
}

}  // namespace rio::wire::udp
