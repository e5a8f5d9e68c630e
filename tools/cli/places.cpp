// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/places.h"

namespace cli {

std::string PlaceGroup::name() const {
  return places.size() == 1 ? *places.begin() : place_without_line(*places.begin());
}

PlaceGroups place_groups(const Report& report) {
  PlaceGroups groups;
  if (!report.sites) return groups;
  for (const Site& site : report.sites->list) {
    std::string place = site.place;
    if (site.through) place += " through " + *site.through;
    PlaceGroup& group = groups[site.entry + " " + place_without_line(place)];
    group.entry = site.entry;
    group.places.insert(place);
    group.calls += site.calls;
    group.total_ns += site.total_ns;
  }
  return groups;
}

}  // namespace cli
