"""Statistics: quantiles, reductions that leave out NaN, averages and covariances, histograms, as NumPy's functions.

Work stays on the device and is asynchronous on the current stream; what must look at data says so. NumPy's warnings of
what the data hold (a slice of NaN only) are not given: that would wait for the data.
"""
