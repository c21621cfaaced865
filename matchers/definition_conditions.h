// When the two sides of a definition are the same, by sizes, types and literals. Internal to matchers/.
//
// Each may say what the other side needs. What is not known does not hold.
#pragma once

#include <fxgraph/matchers/definitions.h>

namespace fx::internal {

/// The rows, made anew.
std::vector<Definition> definition_table();

/// Two numbers, the lower first.
bool has_bounds(DefinitionSite& site);
/// A number and what dividing by it multiplies with.
bool has_inverse(DefinitionSite& site);
/// The last two of at least two dimensions change places.
bool swaps_last(DefinitionSite& site);
/// x has two dimensions.
bool is_matrix(DefinitionSite& site);
/// A dimension counted from the front and from the end.
bool has_dimension(DefinitionSite& site);
/// w has two dimensions.
bool weight_is_matrix(DefinitionSite& site);
/// The product of matrices, whose bias is a row.
bool is_plain_linear(DefinitionSite& site);
/// The bias is a row of the product.
bool has_row_bias(DefinitionSite& site);
/// Rows are put under each other, multiplied, and put back.
bool is_viewed_linear(DefinitionSite& site);
/// a and b have two dimensions.
bool are_matrices(DefinitionSite& site);
/// a and b are as many matrices.
bool are_batches(DefinitionSite& site);
/// Both are put under each other by their leading dimensions, which are the result's, or were made so.
bool is_viewed_matmul(DefinitionSite& site);
/// The mean over what comes behind the channels.
bool is_global(DefinitionSite& site);
/// Dimensions that follow each other become one.
bool merges(DefinitionSite& site);
/// x and w have so many dimensions behind the channels.
template <int dims>
bool convolves(DefinitionSite& site);
/// The result is of another type.
bool changes_type(DefinitionSite& site);
/// The scale is that of a head.
bool scales_by_head(DefinitionSite& site);
/// takes_halves
bool takes_halves(DefinitionSite& site);

}  // namespace fx::internal
