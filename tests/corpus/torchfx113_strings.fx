graph():
    %x : [#users=1] = placeholder[target=x]
    %einsum : [#users=1] = call_function[target=torch.functional.einsum](args = (bij, bjk -> bik, %x, %x), kwargs = {})
    %wrapped : [#users=1] = call_function[target=fx_syntax.wrapped](args = (%einsum, it's, say "so", first
second, , %x, 1.0), kwargs = {sep: , , end: )\n})
    %div : [#users=1] = call_function[target=torch.div](args = (%wrapped, 2), kwargs = {rounding_mode: floor})
    return div
